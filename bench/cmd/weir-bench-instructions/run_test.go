//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"
)

// If step started the process, TestMain makes the calls. Otherwise it runs the tests.
func TestMain(m *testing.M) {
	if os.Getenv(role) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// mostForOneLimit is the maximum number of instructions of a decision by one limit. The clock is the coarse one, which
// does not read the processor's counter. The decision takes 1,682 instructions with Go 1.26 on amd64. The difference
// allows for other compilers and processors.
const mostForOneLimit = 1710

// TestADecisionCostsWhatItMay: a decision by one limit in memory takes at most mostForOneLimit instructions.
func TestADecisionCostsWhatItMay(t *testing.T) {
	if os.Getenv("WEIR_GUARD") == "" {
		t.Skip("stepping is slow on a busy machine: make bench-guard")
	}
	runtime.LockOSThread() // the thread that starts the other process must be the one that steps through it
	var found []count
	require.NoError(t, step(oneLimit, func(_ string, c count) { found = append(found, c) }))
	require.Len(t, found, 1)
	t.Log(found[0])
	assert.LessOrEqual(t, found[0].instructions, mostForOneLimit, "make bench-instructions counts the other calls")
	assert.Greater(t, found[0].instructions, mostForOneLimit/2, "fewer than a decision can take")
}

// TestCount: an instruction that uses memory counts as a load, a store or both.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		what          string
		code          []byte
		loads, stores int
	}{
		{"mov rbx, [rax]", []byte{0x48, 0x8b, 0x18}, 1, 0},
		{"mov [rax], rbx", []byte{0x48, 0x89, 0x18}, 0, 1},
		{"mov rax, rbx", []byte{0x48, 0x89, 0xd8}, 0, 0},
		{"add [rax], rbx", []byte{0x48, 0x01, 0x18}, 1, 1},
		{"add rbx, [rax]", []byte{0x48, 0x03, 0x18}, 1, 0},
		{"cmp [rax], rbx", []byte{0x48, 0x39, 0x18}, 1, 0},
		{"lock cmpxchg [rdx], rcx", []byte{0xf0, 0x48, 0x0f, 0xb1, 0x0a}, 1, 1},
		{"mul qword [rax]", []byte{0x48, 0xf7, 0x20}, 1, 0},
		{"lea rbx, [rax]", []byte{0x48, 0x8d, 0x18}, 0, 0},
		{"push rbx", []byte{0x53}, 0, 1},
		{"pop rbx", []byte{0x5b}, 1, 0},
		{"ret", []byte{0xc3}, 1, 0},
		{"stosq", []byte{0x48, 0xab}, 0, 1},
		{"movsq", []byte{0x48, 0xa5}, 1, 1},
	} {
		inst, err := x86asm.Decode(c.code, 64)
		require.NoError(t, err, c.what)
		var got count
		got.add(instruction{Inst: inst}, false)
		assert.Equal(t, count{instructions: 1, loads: c.loads, stores: c.stores}, got, c.what)
	}
}

// TestARepeatedInstructionIsOne: all repetitions of a REP instruction write, but count as one instruction, as in the
// processor's counters.
func TestARepeatedInstructionIsOne(t *testing.T) {
	inst, err := x86asm.Decode([]byte{0xf3, 0x48, 0xab}, 64) // rep stosq
	require.NoError(t, err)
	var got count
	for i := range 3 {
		got.add(instruction{Inst: inst}, i > 0)
	}
	assert.Equal(t, count{instructions: 1, stores: 3}, got)
}

// TestMedian: if the counts of calls differ, the median is used.
func TestMedian(t *testing.T) {
	assert.Equal(t, count{instructions: 7, loads: 1},
		median([]count{{instructions: 9}, {instructions: 7, loads: 1}, {instructions: 3}}))
}
