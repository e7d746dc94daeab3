package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testrace"
)

func TestEveryPlaceIsChanged(t *testing.T) {
	found, err := ofFile("a.go", `package a

const size = 1 << 7

func f(w *word, a, b int) (bool, State) {
	x := w.Load()
	w.Store(1)
	if max(a, b) < b && x == w.Load() {
		return true, 0
	}
	for !w.CompareAndSwap(x, y) {
		break
	}
	switch {
	case a > 1:
		sl.state.Abort(x)
	}
	return false, 0
}

func (w *word) String() string { return "1" + "2" }
`)
	require.NoError(t, err)
	var names []string
	for _, m := range mutations([]file{found}) {
		names = append(names, strings.TrimPrefix(m.name(), "a.go "))
	}
	assert.ElementsMatch(t, []string{
		"const: another operator: << -> >> in const size = 1 << 7",
		"const: one more: 1 -> (1+1) in const size = 1 << 7",
		"const: one less: 1 -> (1-1) in const size = 1 << 7",
		"const: one more: 7 -> (7+1) in const size = 1 << 7",
		"const: one less: 7 -> (7-1) in const size = 1 << 7",
		"f: exchange two statements: x := w.Load() w.Store(1) -> w.Store(1); x := w.Load() in x := w.Load()",
		"f: read it here: x -> mutantNow(x, w.Load()) in if max(a, b) < b && x == w.Load() {",
		"f: read it here: x -> mutantNow(x, w.Load()) in for !w.CompareAndSwap(x, y) {",
		"f: read it here: x -> mutantNow(x, w.Load()) in sl.state.Abort(x)",
		"f: drop a statement: w.Store(1) -> nothing in w.Store(1)",
		"f: read w.Load() before x := w.Load() in if max(a, b) < b && x == w.Load() {",
		"f: read w.Load() before w.Store(1) in if max(a, b) < b && x == w.Load() {",
		"f: one more: 1 -> (1+1) in w.Store(1)",
		"f: one less: 1 -> (1-1) in w.Store(1)",
		"f: always: max(a, b) < b && x == w.Load() -> true in if max(a, b) < b && x == w.Load() {",
		"f: never: max(a, b) < b && x == w.Load() -> false in if max(a, b) < b && x == w.Load() {",
		"f: drop an operand: max(a, b) < b && x == w.Load() -> max(a, b) < b in if max(a, b) < b && x == w.Load() {",
		"f: drop an operand: max(a, b) < b && x == w.Load() -> x == w.Load() in if max(a, b) < b && x == w.Load() {",
		"f: another operator: < -> <= in if max(a, b) < b && x == w.Load() {",
		"f: one operand: max(a, b) -> (a) in if max(a, b) < b && x == w.Load() {",
		"f: one operand: max(a, b) -> (b) in if max(a, b) < b && x == w.Load() {",
		"f: another operator: == -> != in if max(a, b) < b && x == w.Load() {",
		"f: the opposite: true -> false in return true, 0",
		"f: one more: 0 -> (0+1) in return true, 0",
		"f: one less: 0 -> (0-1) in return true, 0",
		"f: always: !w.CompareAndSwap(x, y) -> true in for !w.CompareAndSwap(x, y) {",
		"f: never: !w.CompareAndSwap(x, y) -> false in for !w.CompareAndSwap(x, y) {",
		"f: a store for a compare-and-swap: w.CompareAndSwap(x, y) -> func() bool { w.Store(y); return true }() in for !w.CompareAndSwap(x, y) {",
		"f: no compare-and-swap: w.CompareAndSwap(x, y) -> true in for !w.CompareAndSwap(x, y) {",
		"f: drop a statement: break -> nothing in break",
		"f: always: a > 1 -> true in case a > 1:",
		"f: never: a > 1 -> false in case a > 1:",
		"f: drop a statement: sl.state.Abort(x) -> nothing in sl.state.Abort(x)",
		"f: another operator: > -> >= in case a > 1:",
		"f: one more: 1 -> (1+1) in case a > 1:",
		"f: one less: 1 -> (1-1) in case a > 1:",
		"f: a store for a transition: Abort -> AbortStored in sl.state.Abort(x)",
		"f: no transition: Abort -> AbortUnmade in sl.state.Abort(x)",
		"f: the opposite: false -> true in return false, 0",
		"f: one more: 0 -> (0+1) in return false, 0",
		"f: one less: 0 -> (0-1) in return false, 0",
	}, names)
}

// TestWhatHasAType: variables, fields and arguments are replaced by other variables, fields and arguments of their
// type. Structs and indexes are replaced by zero values. A flag is set after later statements.
func TestWhatHasAType(t *testing.T) {
	testrace.OneGoroutine(t)
	parsed, err := parse(map[string]string{"a.go": `package a

import "sync/atomic"

type quota struct{ token, limit uint64; name string }

type flag struct{}

func (flag) Swap(bool) bool { return false }

type once struct{ ended uint32 }

func (o *once) end() bool { return atomic.SwapUint32(&o.ended, 1) == 0 }

func h(o *once) bool {
	if !o.end() {
		return false
	}
	return true
}

func g(a, b uint64, q quota) bool { return false }

func f(n, most uint64, q quota, all []quota, done flag) bool {
	half := n / most
	half *= 2
	if done.Swap(true) {
		return true
	}
	return g(half, q.token, all[n])
}
`})
	require.NoError(t, err)
	imports, err := exported("../..", packages)
	require.NoError(t, err)
	require.NoError(t, parsed.check(imports))
	found := parsed.file("a.go")
	var names []string
	for _, m := range mutations([]file{found}) {
		if m.isNew() {
			names = append(names, strings.TrimPrefix(strings.TrimPrefix(m.name(), "a.go f: "), "a.go "))
		}
	}
	assert.ElementsMatch(t, []string{
		"another operator: / -> * in half := n / most",
		"begin with nothing: n / most -> mutantZero(n / most) in half := n / most",
		"another variable: n -> most in half := n / most",
		"another variable: most -> n in half := n / most",
		"another operator: *= -> /= in half *= 2",
		"a flag too late: done.Swap(true) { return true } -> done.Load() { return true }; defer done.Store(true) in if done.Swap(true) {",
		"h: a flag too late: if !o.end() { return false } -> if !o.end() { return false } atomic.StoreUint32(&o.ended, 0); " +
			"defer atomic.StoreUint32(&o.ended, 1) in if !o.end() {",
		"swap arguments: half, q.token -> q.token, half in return g(half, q.token, all[n])",
		"nothing of it: all[n] -> mutantZero(all[n]) in return g(half, q.token, all[n])",
		"another variable: half -> most in return g(half, q.token, all[n])",
		"another variable: half -> n in return g(half, q.token, all[n])",
		"another field: token -> limit in return g(half, q.token, all[n])",
		"the first: n -> mutantZero(n) in return g(half, q.token, all[n])",
		"another variable: n -> half in return g(half, q.token, all[n])",
		"another variable: n -> most in return g(half, q.token, all[n])",
	}, names)
}

func TestTheNamesOfChangesDiffer(t *testing.T) {
	testrace.OneGoroutine(t)
	all, err := files("../..", packages)
	require.NoError(t, err)
	known := map[string]bool{}
	for _, m := range mutations(all) {
		assert.False(t, known[m.name()], m.name())
		known[m.name()] = true
	}
	require.Greater(t, len(known), 500)
	for _, list := range []map[string]string{equivalent, open} {
		for name, reason := range list {
			assert.True(t, known[name], "a list has a change that there is not: %s", name)
			assert.NotEmpty(t, reason, name)
		}
	}
	for name := range open {
		assert.NotContains(t, equivalent, name)
	}
}

// TestASampleHasAllParts: half of a sample are noticed changes of engine, and a quarter are changes of other packages
// that are not new. If a change of these two kinds survives, the sample fails.
func TestASampleHasAllParts(t *testing.T) {
	testrace.OneGoroutine(t)
	all, err := files("../..", packages)
	require.NoError(t, err)
	sample := parts(mutations(all), 8)
	require.Len(t, sample, 8)
	count := map[[2]bool]int{}
	for _, m := range sample {
		count[[2]bool{m.isOfEngine(), m.isNew()}]++
	}
	assert.Equal(t, 4, count[[2]bool{true, false}], "of engine")
	assert.Equal(t, 2, count[[2]bool{false, false}], "of the others")
}

func TestReasons(t *testing.T) {
	assert.Equal(t, map[string]string{"a": "because of this", "b": "because of this", "c": "or that"},
		reasons("# what\nbecause\nof this\n\ta\n\n\tb\nor that\n\tc\n"))
}

// A result is valid as long as the tokens of its function stay the same, whatever its comments, white space and
// surroundings.
func TestAResultIsOfTheTextOfAFunction(t *testing.T) {
	keys := func(source string) (keys []string) {
		found, err := ofFile("a.go", "package a\n"+source)
		require.NoError(t, err)
		for _, m := range mutations([]file{found}) {
			keys = append(keys, m.key)
		}
		return keys
	}
	of := keys("func f(a int) int {\n\treturn a + 1\n}\n")
	assert.Len(t, of, 3)
	assert.Equal(t, of, keys("const b = \"\"\n\n// f does it.\nfunc f(a int) int {\n\t// so\n\treturn a +\n1 // that\n}\n"))
	for _, key := range keys("func f(a int) int {\n\ta, b := 1, a\n\treturn a + 1\n}\n") {
		assert.NotContains(t, of, key)
	}
	assert.NotContains(t, of, keys("func g(a int) int {\n\treturn a + 1\n}\n")[0])
}

func TestHistory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "history.txt")
	h, err := openHistory(name)
	require.NoError(t, err)
	found, err := ofFile("a.go", "package a\nfunc f(a int) int {\n\treturn a + 1\n}\n")
	require.NoError(t, err)
	all := mutations([]file{found})
	assert.Equal(t, tally{untried: all}, h.tally(all))
	gone := mutation{file: "a.go", function: "f", key: "gone"}
	require.NoError(t, h.add(gone, result{"s", "TestGone"}))
	require.NoError(t, h.add(all[0], result{survives, "engine"}))
	require.NoError(t, h.add(all[1], result{unbuilt, ""}))

	h, err = openHistory(name) // as after a run that was stopped
	require.NoError(t, err)
	assert.Equal(t, tally{unbuilt: 1, survivors: all[:1], untried: all[2:]}, h.tally(all))
	assert.Equal(t, map[string]map[string]int{"a.go f": {"TestGone": 1}}, h.catches())
	require.NoError(t, h.add(all[0], result{"s", "TestNow"}))
	require.NoError(t, h.close(all))

	h, err = openHistory(name)
	require.NoError(t, err)
	assert.Equal(t, tally{noticed: 1, unbuilt: 1, untried: all[2:]}, h.tally(all))
	assert.NotContains(t, h.known, "gone")
	assert.Error(t, h.read("no tabs\n"))
}

// TestTestsAreAskedByTheirPromise: first come tests that have noticed changes of the same function, then of the same
// file, then fast tests. Each test that reaches the function runs once, in rounds of one task per binary.
func TestTestsAreAskedByTheirPromise(t *testing.T) {
	binaryOf := func(tests ...test) func() (*binary, error) {
		b := &binary{tests: tests}
		return func() (*binary, error) { return b, nil }
	}
	here, elsewhere := map[string]bool{"shard/a.go f": true}, map[string]bool{"shard/a.go g": true}
	r := &runner{
		binaries: []func() (*binary, error){
			binaryOf(test{name: "of another package"}),
			binaryOf(test{"fast", 0.01, nil}, test{"slow", 5, here}, test{"does not reach it", 0, elsewhere}),
			binaryOf(test{name: "of another package"}),
			binaryOf(test{"noticed f", 0.02, here}, test{"noticed g", 0.02, nil}, test{"slower", 9, nil}),
		},
		catches: map[string]map[string]int{"shard/a.go f": {"noticed f": 1}, "shard/a.go g": {"noticed g": 1}, "shard/b.go f": {"slow": 9}},
	}
	tasks, err := r.tasks(mutation{file: "shard/a.go", function: "f"}, 0, 4, false)
	require.NoError(t, err)
	var names [][]string
	for _, task := range tasks {
		var of []string
		for _, test := range task.tests {
			of = append(of, test.name)
		}
		names = append(names, of)
	}
	assert.Equal(t, [][]string{{"noticed f", "noticed g"}, {"fast"}, {"slow"}, {"slower"}}, names)
}

// TestTimesOfTests: a test takes at least as long as its subtests, which may be parallel.
func TestTimesOfTests(t *testing.T) {
	const out = "=== RUN   TestA\n--- PASS: TestA (0.50s)\n    --- PASS: TestA/x (2.00s)\n    --- PASS: TestA/y (1.00s)\n" +
		"        --- PASS: TestA/y/z (9.00s)\n--- FAIL: TestB (1.00s)\n--- PASS: TestC (4.00s)\n    --- PASS: TestC/x (3.00s)\nFAIL\n"
	b := &binary{}
	b.measure(out, 0.5)
	assert.Equal(t, []test{{name: "TestA", seconds: 1.5}, {name: "TestC", seconds: 2}}, b.tests)
	b = &binary{suite: suite{parts: true}}
	b.measure(out, 1)
	assert.Equal(t, []test{{name: "TestA/x", seconds: 2}, {name: "TestA/y", seconds: 1}, {name: "TestC/x", seconds: 3}}, b.tests)
}

// TestWhatCountsAsNoticed: a test counts if it fails with a change and passes without it. Tests that break off or take
// too much processor time count, too. Tests that something else stops do not.
func TestWhatCountsAsNoticed(t *testing.T) {
	fails := func(name string) string {
		return `case "$*" in *` + name + `*) echo "--- FAIL: ` + name + ` (0.00s)"; exit 1;; esac`
	}
	for _, c := range []struct{ name, changed, unchanged, want, err string }{
		{"passes", "exit 0", "exit 0", "", ""},
		{"fails", fails("TestA"), "exit 0", "TestA", ""},
		{"a test that fails anyway", fails("TestA"), fails("TestA"), "", ""},
		{"another that fails, too", fails("TestA") + ";" + fails("TestB"), fails("TestA"), "TestB", ""},
		{"breaks off", "echo 'panic: no'; exit 2", "exit 0", hung, ""},
		{"does not end", "while true; do true; done", "exit 0", hung, ""},
		{"breaks off anyway", "echo 'fatal error: no'; exit 2", "echo 'fatal error: no'; exit 2", "", "do not end without a change"},
		{"is stopped", "kill -KILL $$", "exit 0", "", "were stopped: signal: killed"},
		{"is no program", "exit 127", "exit 0", "", "were stopped: exit status 127"},
		{"leaves files", "test -z \"$(ls $TMPDIR)\" && touch $TMPDIR/a && " + fails("TestA"),
			"test -z \"$(ls $TMPDIR)\" || " + fails("TestA"), "TestA", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			b := &binary{suite: suite{name: "s"}, root: folder, path: filepath.Join(folder, "s.test")}
			script := "#!/bin/sh\nif [ $WEIR_MUTANT = 7 ]; then " + c.changed + "; else " + c.unchanged + "; fi\n"
			require.NoError(t, os.WriteFile(b.path, []byte(script), 0o700))
			test, err := b.try(b.path, 7, []test{{name: "TestA"}, {name: "TestB"}})
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			assert.Equal(t, c.want, test)
		})
	}
}
