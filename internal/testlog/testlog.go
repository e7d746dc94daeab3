// Package testlog collects what a logger or a program writes. Tests can read the log at the same time.
package testlog

import (
	"bytes"
	"strings"
	"sync"
)

// A Log collects what is written to it. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the log. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// With returns the lines that contain a text.
func (l *Log) With(text string) (lines []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}
