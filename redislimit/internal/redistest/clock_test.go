//go:build unix

package redistest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClock(t *testing.T) {
	at := time.Date(2010, 1, 2, 3, 4, 5, 123456000, time.UTC)
	s := StartWithClock(t, at)
	assert.Equal(t, "1262401445\n123456", s.Do("TIME"))
	assert.Equal(t, "1262401445\n123456", s.Do("EVAL", "return redis.call('TIME')", "0"))
	s.Do("SET", "k", "v", "PX", "1000")
	assert.Equal(t, "1000", s.Do("PTTL", "k"), "the clock does not stand still")
	s.SetClock(at.Add(time.Second))
	assert.Equal(t, "v", s.Do("GET", "k"))
	s.SetClock(at.Add(time.Second + time.Millisecond))
	assert.Empty(t, s.Do("GET", "k"), "a key outlived its time")

	s.Do("SET", "k", "v", "PX", "1000")
	s.SetClock(at.Add(-time.Hour)) // the change makes the key live an hour longer
	assert.Equal(t, "3602001", s.Do("PTTL", "k"))
	for i := range 200 { // the clock can be set to every microsecond
		s.SetClock(at.Add(time.Duration(i*4987) * time.Microsecond))
	}
	s.Restart()
	s.SetClock(at)
}

func TestMissingClockLibrary(t *testing.T) {
	old := clockLibraries
	clockLibraries = []string{filepath.Join(t.TempDir(), "*", "none.so")}
	defer func() { clockLibraries = old }()
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		r := &recorder{TB: t}
		assert.PanicsWithError(t, errEnded.Error(), func() { clockLibrary(r) })
		if ci == "" {
			assert.Contains(t, r.skipped, "apt-get install faketime")
		} else {
			assert.Contains(t, r.failed, "no libfaketimeMT.so.1")
			assert.Empty(t, r.skipped)
		}
	}
	file := filepath.Join(t.TempDir(), "a.so")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	clockLibraries = append(clockLibraries, file)
	assert.Equal(t, file, clockLibrary(t))
}

func TestMonitor(t *testing.T) {
	s := Start(t)
	s.Do("PING")
	odd := "a \"b\" \\ \x00\n\xff]"
	commands := s.Monitor(func() {
		s.Do("SET", "k", odd)
		s.Do("EVAL", "return redis.call('GET', KEYS[1])", "1", "k")
	})
	assert.Equal(t, []Command{
		{false, []string{"SET", "k", odd}},
		{false, []string{"EVAL", "return redis.call('GET', KEYS[1])", "1", "k"}},
		{true, []string{"GET", "k"}},
	}, commands)
}
