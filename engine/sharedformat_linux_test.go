package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/keyhash"
	"github.com/weir-go/weir/internal/sharedfile"
)

// TestSharedFormatVectors: this program computes the numbers that are in docs/shared-format.md.
func TestSharedFormatVectors(t *testing.T) {
	page, err := os.ReadFile("../docs/shared-format.md")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "table")
	l, err := sharedLimiter(path)
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.Take("key", 3).Allowed)
	info, err := os.Stat(path)
	require.NoError(t, err)
	secret := keyhash.Secret{0x0123456789abcdef, 0x13579bdf02468ace, 0xfedcba9876543210, 0xeca86420fdb97531}
	texts := secret.Derive(0)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	// A slot has the state word first, and then the key word.
	at := bytes.LastIndex(file, binary.NativeEndian.AppendUint64(nil, l.Key("key").hash&^(15<<20))) - 8
	require.Positive(t, at)
	state := binary.NativeEndian.Uint64(file[at:])
	for _, want := range []string{
		fmt.Sprintf("version %d", sharedfile.LayoutVersion),
		fmt.Sprintf("texts' secret | `%#x %#x %#x %#x`", texts[0], texts[1], texts[2], texts[3]),
		fmt.Sprintf("hash of `key` | `%#x`", keyhash.Keyed(&texts, "key")),
		fmt.Sprintf("hash of `192.0.2.1` | `%#x`", keyhash.Keyed(&texts, "192.0.2.1")),
		fmt.Sprintf("hash of 20 times `k` | `%#x`", keyhash.Keyed(&texts, strings.Repeat("k", 20))),
		fmt.Sprintf("MaxKeys 1000, Shards %d | %d slots, %d bytes", l.Stats().Shards, l.Stats().Slots, info.Size()),
		fmt.Sprintf("three tokens | `%#x`", state),
	} {
		assert.Contains(t, string(page), want)
	}
}

// inC builds the program in C, or skips the test without a compiler.
func inC(t *testing.T) string {
	cc, err := exec.LookPath("cc")
	if err != nil {
		fmt.Println(t.Name(), "is skipped: there is no C compiler")
		t.Skip("there is no C compiler")
	}
	program := filepath.Join(t.TempDir(), "take")
	out, err := exec.CommandContext(t.Context(), cc, "-O2", "-Wall", "-Werror", "-o", program, "testdata/shared/take.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// TestSharedBesideC: if processes in C are killed at any instruction, no key gets more than its burst.
func TestSharedBesideC(t *testing.T) {
	program, kills, path := inC(t), killsOf(t), filepath.Join(t.TempDir(), "table")
	counts := tally(t, path+".tally")
	survivor, err := sharedLimiter(path)
	require.NoError(t, err)
	defer survivor.Close()
	for i := range sharedKeys {
		require.True(t, survivor.Allow("key "+strconv.Itoa(i)))
		counts[i].Add(1)
	}
	inOther := func() *exec.Cmd {
		command := exec.CommandContext(t.Context(), program, path, path+".tally",
			strconv.FormatInt(frozen().UnixNano(), 10), strconv.Itoa(sharedKeys))
		command.Stderr = os.Stderr
		out, err := command.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, command.Start())
		ready := make([]byte, len("ready\n"))
		_, err = io.ReadFull(out, ready)
		require.NoError(t, err)
		return command
	}
	workers := []*exec.Cmd{inOther(), inOther()}
	fromC := uint64(0)
	for i := range kills {
		for until := counts[decisions].Load() + rand.Uint64N(1000); counts[decisions].Load() < until; {
			runtime.Gosched()
		}
		w := i % len(workers)
		require.NoError(t, workers[w].Process.Kill())
		assert.ErrorContains(t, workers[w].Wait(), "killed")
		workers[w] = inOther()
		survivor.Sweep()
	}
	for i := range sharedKeys {
		fromC += counts[i].Load()
	}
	assert.Greater(t, fromC, uint64(sharedKeys), "C has taken")
	beside := worker(t, path)
	stopWhenDrained(t, survivor, counts, append(workers, beside))
	for i := range sharedKeys {
		got := counts[i].Load()
		assert.LessOrEqual(t, got, uint64(sharedBurst), "key %d", i)
		assert.GreaterOrEqual(t, got+uint64(kills), uint64(sharedBurst), "key %d", i)
	}
}
