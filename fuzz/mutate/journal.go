package main

import (
	"fmt"
	"os"
	"strings"
)

// A result is what noticed a change: a suite and a test of it, unbuilt, or "" for nothing.
type result struct{ suite, test string }

// A journal is a file of results, so that a run which was stopped can go on: a line for each change that was tried, of
// the suite, the test and the change, with tabs between them. A line that is deleted makes its change be tried again.
type journal struct{ file *os.File }

// openJournal returns the journal of a name, and the results that it holds. Without a name it writes nothing.
func openJournal(name string) (journal, map[string]result, error) {
	known := map[string]result{}
	if name == "" {
		return journal{}, known, nil
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return journal{}, nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return journal{}, nil, err
	}
	for line := range strings.Lines(string(text)) {
		suite, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		test, change, also := strings.Cut(rest, "\t")
		if !ok || !also {
			return journal{}, nil, fmt.Errorf("%s: line %q: want a suite, a test and a change, with tabs between them", name, line)
		}
		known[change] = result{suite, test}
	}
	return journal{file}, known, nil
}

// add writes the result of a change.
func (j journal) add(change string, r result) error {
	if j.file == nil {
		return nil
	}
	_, err := fmt.Fprintf(j.file, "%s\t%s\t%s\n", r.suite, r.test, change)
	return err
}
