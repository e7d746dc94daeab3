package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryPlaceIsChanged(t *testing.T) {
	found, err := ofFile("a.go", `package a

func f(w *word, a, b int) {
	x := w.Load()
	y := 7
	if a < b && x == 0 {
		w.Store(1)
		return
	}
	for !w.CompareAndSwap(x, y) {
		break
	}
}

func (w *word) String() string { return "1" + "2" }
`)
	require.NoError(t, err)
	var names []string
	for _, m := range found {
		names = append(names, m.what+": "+oneLine(m.old)+" -> "+oneLine(m.text))
	}
	assert.ElementsMatch(t, []string{
		"exchange two statements: x := w.Load() y := 7 -> y := 7; x := w.Load()",
		"one more: 7 -> (7+1)", "one less: 7 -> (7-1)",
		"negate a condition: a < b && x == 0 -> !(a < b && x == 0)",
		"drop an operand: a < b && x == 0 -> a < b", "drop an operand: a < b && x == 0 -> x == 0",
		"another operator: < -> <=", "another operator: == -> !=",
		"one more: 0 -> (0+1)", "one less: 0 -> (0-1)",
		"drop a statement: w.Store(1) -> nothing", "one more: 1 -> (1+1)", "one less: 1 -> (1-1)",
		"negate a condition: !w.CompareAndSwap(x, y) -> !(!w.CompareAndSwap(x, y))",
		"a store for a compare-and-swap: w.CompareAndSwap(x, y) -> func() bool { w.Store(y); return true }()",
		"drop a statement: break -> nothing",
	}, names)
}

func TestTheNamesOfChangesDiffer(t *testing.T) {
	all, err := mutations("../..", []string{"atomicbucket", "shard"})
	require.NoError(t, err)
	known := map[string]int{}
	for _, m := range all {
		known[m.name()]++
	}
	require.Greater(t, len(known), 500)
	for name := range explanations(equivalent) {
		assert.Contains(t, known, name, "the list explains a change that there is not")
	}
}
