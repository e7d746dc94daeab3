//go:build unix

package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var clockLibraries = []string{
	"/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1", "/usr/lib64/faketime/libfaketimeMT.so.1",
	"/usr/local/lib/faketime/libfaketimeMT.so.1",
}

// StartWithClock starts a server whose time of day stands still, to the microsecond, until [Server.SetClock] is called.
// Its monotonic clock continues. With Valkey the test is skipped.
func StartWithClock(t testing.TB, at time.Time) *Server {
	t.Helper()
	library := clockLibrary(t)
	if version, _ := exec.Command(program(t), "--version").Output(); strings.Contains(string(version), "Valkey") {
		t.Skip("Valkey calls jemalloc by functions that no other allocator has, and so cannot be given a clock: it takes a redis-server")
	}
	file := filepath.Join(t.TempDir(), "clock")
	s := &Server{clock: file, environment: []string{
		// Debian's redis-server uses jemalloc, which reads the time before the library is ready. So this server uses
		// the allocator of the C library.
		"LD_PRELOAD=" + library + ":libc_malloc_debug.so.0",
		"FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "TZ=UTC",
	}}
	if err := writeClock(file, at); err != nil {
		t.Fatal(err)
	}
	s.start(t, false)
	s.SetClock(at)
	return s
}

// SetClock sets the clock of a server that [StartWithClock] has started, forward or back.
func (s *Server) SetClock(at time.Time) {
	s.t.Helper()
	if err := writeClock(s.clock, at); err != nil {
		s.t.Fatal(err)
	}
	want := fmt.Sprintf("%d\n%d", at.Unix(), at.Nanosecond()/1000)
	if now := s.Do("TIME"); now != want {
		s.t.Fatalf("%s: its clock was set to %v, which is %q, and it says %q", s.Addr(), at, want, now)
	}
}

func writeClock(file string, at time.Time) error {
	// The library reads the fraction of a second as a double, and truncates it. Half a microsecond more keeps the last
	// microsecond.
	text := at.UTC().Truncate(time.Microsecond).Add(500 * time.Nanosecond).Format("2006-01-02 15:04:05.0000000")
	if err := os.WriteFile(file+".new", []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// clockLibrary returns the library's path. Without it, the test is skipped, or fails if CI is set.
func clockLibrary(t testing.TB) string {
	t.Helper()
	for _, pattern := range clockLibraries {
		if paths, _ := filepath.Glob(pattern); len(paths) > 0 {
			return paths[0]
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no libfaketimeMT.so.1 in " + strconv.Quote(filepath.Dir(clockLibraries[0])))
	}
	t.Skip("there is no libfaketimeMT.so.1, which sets the clock of a server: make test installs it; on Debian: apt-get install faketime")
	return ""
}
