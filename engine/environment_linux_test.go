//go:build environment

package engine

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The tests in this file cause failures in the environment of a shared table, such as full disks, stopped processes and
// removed files. `make test-environment` runs them. They need root, because they mount file systems.

func mounted(t *testing.T, size int64) string {
	folder := t.TempDir()
	if err := unix.Mount("weir-test", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		fmt.Printf("%s is skipped: no memory can be mounted here: %v\n", t.Name(), err)
		t.Skip("no memory can be mounted here")
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(folder, unix.MNT_DETACH)) })
	return folder
}

// largeLimiter returns a limiter whose file has 26 MiB.
func largeLimiter(path string) (*Limiter, error) {
	return New(FixedWindow(1000, 24*time.Hour), Shared(path))
}

// TestEnvironmentStarter is the program that the tests start: it attaches, takes a token and stays attached.
func TestEnvironmentStarter(t *testing.T) {
	path := os.Getenv("WEIR_TEST_SHARED")
	if path == "" {
		t.Skip("other tests run this")
	}
	l, err := largeLimiter(path)
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	defer l.Close()
	fmt.Println("left", l.Take("key", 1).Remaining)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type starter struct {
	*exec.Cmd
	in  io.Closer
	out io.Reader
}

func start(t *testing.T, path string) starter {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnvironmentStarter$")
	c.Env = append(os.Environ(), "WEIR_TEST_SHARED="+path)
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	return starter{c, in, out}
}

// says returns the line that the process writes when it has attached or failed to.
func (s starter) says() (line string) {
	word := make([]byte, 1)
	for !strings.HasSuffix(line, "\n") {
		if _, err := s.out.Read(word); err != nil {
			return line
		}
		line += string(word)
	}
	return line
}

func (s starter) end() error {
	err := s.in.Close()
	_, _ = io.Copy(io.Discard, s.out)
	return errors.Join(err, s.Wait())
}

// TestEnvironmentStartStorm: many processes that start at the same time attach to one file and take from one bucket.
func TestEnvironmentStartStorm(t *testing.T) {
	for round := range 5 {
		folder := mounted(t, 64<<20)
		path := filepath.Join(folder, "table")
		all := make([]starter, 24)
		for i := range all {
			all[i] = start(t, path)
		}
		var lines []string
		for _, s := range all {
			line := s.says()
			assert.Contains(t, line, "left ", "round %d", round)
			lines = append(lines, line)
		}
		slices.Sort(lines)
		assert.Len(t, slices.Compact(lines), len(all), "one bucket")
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Len(t, left, 1)
		for _, s := range all {
			require.NoError(t, s.end())
		}
	}
}

// TestEnvironmentFullDisk: without room for the file, New fails and leaves nothing.
func TestEnvironmentFullDisk(t *testing.T) {
	folder := mounted(t, 40<<20)
	path, ballast := filepath.Join(folder, "table"), filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 20<<20), 0o600))
	_, err := largeLimiter(path)
	require.ErrorContains(t, err, "allocate")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, left, 1)
	require.NoError(t, os.Remove(ballast))
	l, err := largeLimiter(path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// TestEnvironmentSparseRestore: attaching allocates the holes of a copy, or returns an error on a full disk. Otherwise
// a later write could kill the process.
func TestEnvironmentSparseRestore(t *testing.T) {
	folder := mounted(t, 40<<20)
	path, ballast := filepath.Join(folder, "table"), filepath.Join(folder, "ballast")
	original := filepath.Join(t.TempDir(), "table")
	l, err := largeLimiter(original)
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Take("key", 400).Allowed)
	whole, err := os.ReadFile(original)
	require.NoError(t, err)
	sparse, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer sparse.Close()
	require.NoError(t, sparse.Truncate(int64(len(whole))))
	for at := 0; at < len(whole); at += 4096 {
		if page := whole[at : at+4096]; strings.Trim(string(page), "\x00") != "" {
			_, err := sparse.WriteAt(page, int64(at))
			require.NoError(t, err)
		}
	}
	require.NoError(t, os.WriteFile(ballast, make([]byte, 30<<20), 0o600))
	_, err = largeLimiter(path)
	require.ErrorContains(t, err, "allocate")
	require.NoError(t, os.Remove(ballast))
	restored, err := largeLimiter(path)
	require.NoError(t, err)
	defer restored.Close()
	assert.EqualValues(t, 600, restored.Peek(restored.Key("key"), 1).Remaining)
	require.Error(t, os.WriteFile(ballast, make([]byte, 30<<20), 0o600), "the disk is full")
	for i := range 100_000 {
		restored.AllowKey(restored.KeyUint64(uint64(i)))
	}
}

// TestEnvironmentStoppedWhileAttaching: a process that is stopped at any moment of its start does not prevent others
// from attaching.
func TestEnvironmentStoppedWhileAttaching(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	for i := range 60 {
		path := filepath.Join(t.TempDir(), "table")
		if i%2 == 0 {
			l, err := largeLimiter(path)
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
		s := start(t, path)
		for spin := rand.IntN(20_000_000); spin > 0; spin-- {
		}
		require.NoError(t, syscall.Kill(s.Process.Pid, syscall.SIGSTOP))
		began := time.Now()
		other := start(t, path)
		line := other.says()
		assert.Contains(t, line, "left ", "stop %d, after %v", i, time.Since(began))
		require.NoError(t, other.end())
		require.NoError(t, syscall.Kill(s.Process.Pid, syscall.SIGCONT))
		assert.Contains(t, s.says(), "left ", "and the one that was stopped goes on")
		require.NoError(t, s.end())
	}
}

// TestEnvironmentRemoved: processes notice that their file is removed, and later processes start one new file.
func TestEnvironmentRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	first, err := largeLimiter(path)
	require.NoError(t, err)
	defer first.Close()
	require.NoError(t, os.Remove(path))
	var coming sync.WaitGroup
	for range 8 {
		coming.Go(func() {
			s := start(t, path)
			assert.Contains(t, s.says(), "left ")
			assert.NoError(t, s.end())
		})
	}
	coming.Wait()
	first.Sweep()
	assert.ErrorContains(t, first.Stats().FileLost, "another file has taken the place of the one in use")
	second, err := largeLimiter(path)
	require.NoError(t, err)
	defer second.Close()
	assert.EqualValues(t, 1000-8, second.Peek(second.Key("key"), 1).Remaining, "one file for all that came")
}

// TestEnvironmentForeignFolder: New refuses another user's file, and a folder that belongs neither to the process's
// user nor to root.
func TestEnvironmentForeignFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		fmt.Println("TestEnvironmentForeignFolder is skipped: only root starts processes of others")
		t.Skip("only root starts processes of others")
	}
	const alice, bob = 65533, 65534
	folder, err := os.MkdirTemp("/dev/shm", "weir-test-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o777|os.ModeSticky))
	program := filepath.Join(folder, "program")
	own, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, own, 0o755))
	of := func(user uint32, path string) string {
		c := exec.CommandContext(t.Context(), program, "-test.run=^TestEnvironmentStarter$")
		c.Env, c.Dir = append(os.Environ(), "WEIR_TEST_SHARED="+path), "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		out, err := c.CombinedOutput()
		assert.NoError(t, err, "%s", out)
		return string(out)
	}
	assert.Contains(t, of(alice, filepath.Join(folder, "table")), "left 999")
	assert.Contains(t, of(bob, filepath.Join(folder, "table")), "owner: the file belongs to user 65533")
	theirs := filepath.Join(folder, "theirs")
	require.NoError(t, os.Mkdir(theirs, 0o777))
	require.NoError(t, os.Chmod(theirs, 0o777|os.ModeSticky))
	require.NoError(t, os.Chown(theirs, alice, alice))
	assert.Contains(t, of(bob, filepath.Join(theirs, "table")), "the folder "+theirs+" belongs to user 65533")
	assert.Contains(t, of(alice, filepath.Join(theirs, "table")), "left 999")
}
