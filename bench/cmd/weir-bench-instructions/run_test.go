//go:build linux && amd64

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"
)

// TestCount: what touches memory is counted by what it does there.
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
	} {
		inst, err := x86asm.Decode(c.code, 64)
		require.NoError(t, err, c.what)
		var got count
		got.add(instruction{Inst: inst})
		assert.Equal(t, count{instructions: 1, loads: c.loads, stores: c.stores}, got, c.what)
	}
}

// TestMedian: of calls that differ, the one in the middle stands for all.
func TestMedian(t *testing.T) {
	assert.Equal(t, count{instructions: 7, loads: 1},
		median([]count{{instructions: 9}, {instructions: 7, loads: 1}, {instructions: 3}}))
}
