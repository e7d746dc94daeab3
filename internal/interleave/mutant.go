//go:build explore

package interleave

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/schemata"
)

// A Mutant is the code with one broken rule, made by edits of its text. (Mutant and Edit are aliases of unnamed types,
// because lists of mutants are easier to read without the names of the fields.)
type Mutant = struct {
	Rule, Name string
	Scenario   string // the scenario that catches the mutant, or the name of another test
	Invariant  string // the invariant that the mutant breaks in the scenario
	Edits      []Edit
}

// An Edit replaces Old with New in a file. The file must contain Old exactly once.
type Edit = struct{ File, Old, New string }

// Catch requires, for each mutant, that the mutant's scenario breaks the mutant's invariant. The scenario is one of
// TestScenarios, which call [Test], or another test that reports the broken invariant in the same form. If a scenario
// runs for ten minutes, the mutant counts as not caught. Each scenario also runs without a mutant, for a fifth of a
// second longer than its slowest mutant took, and must break no invariant.
//
// Catch builds the test of the package in the working directory with all mutants that change only bodies of functions
// (package schemata), and once more for each other mutant. It uses the overlay of the go command, so production code
// contains nothing for mutants. The names of files are relative to root.
func Catch(t *testing.T, root string, mutants []Mutant) {
	broken := regexp.MustCompile(`broken: (([A-Z]\d+|\([a-d]\)): .*)`)
	all := newSchema(t, root, mutants)
	binary := build(t, all.overlay(t))
	var mu sync.Mutex
	longest := map[string]time.Duration{} // by the tests of scenarios
	t.Run("mutants", func(t *testing.T) {
		for i, m := range mutants {
			t.Run(m.Rule+" "+m.Name, func(t *testing.T) {
				t.Parallel()
				path := binary
				if all.alone[i] {
					path = build(t, all.overlayOf(t, m))
				}
				begin := time.Now()
				out, err := command(t.Context(), path, i+1, testOf(m)).CombinedOutput()
				took := time.Since(begin)
				require.Error(t, err, "the mutant survives:\n%s", out)
				caught := broken.FindStringSubmatch(string(out))
				require.NotNil(t, caught, "no invariant was broken:\n%s", out)
				require.Equal(t, m.Invariant, caught[2], "%s", out)
				t.Logf("caught: %s %-60s %s", m.Rule, m.Name, caught[1])
				mu.Lock()
				defer mu.Unlock()
				longest[testOf(m)] = max(longest[testOf(m)], took)
			})
		}
	})
	t.Run("no mutant", func(t *testing.T) {
		for test, took := range longest {
			t.Run(test, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), took+200*time.Millisecond)
				defer cancel()
				out, err := command(ctx, binary, 0, test).CombinedOutput()
				require.NotRegexp(t, broken, string(out))
				require.True(t, err == nil || ctx.Err() != nil, "%v\n%s", err, out)
			})
		}
	})
}

// testOf returns the regular expression of the test that runs a mutant's scenario.
func testOf(m Mutant) string {
	if strings.HasPrefix(m.Scenario, "Test") {
		return "^" + m.Scenario + "$"
	}
	return "^TestScenarios$/^" + regexp.QuoteMeta(strings.ReplaceAll(m.Scenario, " ", "_")) + "$"
}

// command returns the command that runs tests with a mutant, or with no mutant if the number is 0.
func command(ctx context.Context, binary string, number int, tests string) *exec.Cmd {
	c := exec.CommandContext(ctx, binary, "-test.v", "-test.timeout", "10m", "-large", "-endless", "-test.run", tests)
	c.Env = append(os.Environ(), schemata.Variable+"="+strconv.Itoa(number))
	return c
}

// build builds the test with the files of the map overlay instead of the real files.
func build(t *testing.T, overlay map[string]string) string {
	dir := t.TempDir()
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "explore.test")
	require.NoError(t, os.WriteFile(list, replace, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-tags=explore", "-overlay", list, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// A schema has the files that mutants change. The number of a mutant is its position in the list, from 1.
type schema struct {
	files map[string]*file // by their absolute names
	root  string
	alone []bool // whether the mutant needs a build of its own, because it changes more than bodies of functions
}

type file struct {
	source    string
	positions *token.FileSet
	tree      *ast.File
	copies    map[*ast.FuncDecl][]schemata.Copy
}

// newSchema reads the files. An edit must match in exactly one place. So if the quoted code has changed, the test
// fails.
func newSchema(t *testing.T, root string, mutants []Mutant) *schema {
	s := &schema{files: map[string]*file{}, root: root, alone: make([]bool, len(mutants))}
	for i, m := range mutants {
		bodies := make([]*ast.FuncDecl, len(m.Edits))
		for j, e := range m.Edits {
			f := s.file(t, e.File)
			require.Equal(t, 1, strings.Count(f.source, e.Old), "%s: %s: %s must contain once:\n%s", m.Rule, m.Name, e.File, e.Old)
			bodies[j] = f.bodyAround(e.Old)
			s.alone[i] = s.alone[i] || bodies[j] == nil
		}
		for j, e := range m.Edits {
			if f := s.file(t, e.File); !s.alone[i] {
				f.add(bodies[j], i+1, e)
			}
		}
	}
	return s
}

func (s *schema) file(t *testing.T, name string) *file {
	name, err := filepath.Abs(filepath.Join(s.root, name))
	require.NoError(t, err)
	if s.files[name] == nil {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		f := &file{source: string(source), positions: token.NewFileSet(), copies: map[*ast.FuncDecl][]schemata.Copy{}}
		f.tree, err = parser.ParseFile(f.positions, name, source, parser.SkipObjectResolution)
		require.NoError(t, err)
		s.files[name] = f
	}
	return s.files[name]
}

// bodyAround returns the function whose body contains a text, or nil.
func (f *file) bodyAround(text string) *ast.FuncDecl {
	from := strings.Index(f.source, text)
	for _, d := range f.tree.Decls {
		function, ok := d.(*ast.FuncDecl)
		if ok && function.Body != nil && function.Name.Name != "init" &&
			from > f.positions.Position(function.Body.Lbrace).Offset && from+len(text) <= f.positions.Position(function.Body.Rbrace).Offset {
			return function
		}
	}
	return nil
}

// add adds an edit of a mutant to the mutant's copy of a function.
func (f *file) add(function *ast.FuncDecl, number int, e Edit) {
	from := strings.Index(f.source, e.Old)
	edit, copies := schemata.Edit{From: from, To: from + len(e.Old), Text: e.New}, f.copies[function]
	if last := len(copies) - 1; last >= 0 && copies[last].Number == number {
		copies[last].Edits = append(copies[last].Edits, edit)
		return
	}
	f.copies[function] = append(copies, schemata.Copy{Number: number, Edits: []schemata.Edit{edit}})
}

// overlay writes the files with the copies of their functions. The result has the written file for each file that it
// replaces.
func (s *schema) overlay(t *testing.T) map[string]string {
	dir, overlay := t.TempDir(), map[string]string{}
	write := func(name, text string) {
		overlay[name] = filepath.Join(dir, strconv.Itoa(len(overlay))+"_"+filepath.Base(name))
		require.NoError(t, os.WriteFile(overlay[name], []byte(text), 0o600))
	}
	for name, f := range s.files {
		var functions []schemata.Function
		for _, d := range f.tree.Decls {
			if function, ok := d.(*ast.FuncDecl); ok && len(f.copies[function]) > 0 {
				functions = append(functions, schemata.Function{Decl: function, Copies: f.copies[function]})
			}
		}
		text, _ := schemata.Text(f.source, f.positions, functions)
		write(name, text)
		// Go initializes the variables of this file first, because of its name.
		chosen := filepath.Join(filepath.Dir(name), "0_mutant_chosen.go")
		if strings.HasSuffix(f.tree.Name.Name, "_test") {
			chosen = filepath.Join(filepath.Dir(name), "0_mutant_chosen_test.go")
		}
		if overlay[chosen] == "" {
			write(chosen, schemata.Chosen(f.tree.Name.Name))
		}
	}
	return overlay
}

// overlayOf writes the files that a mutant changes.
func (s *schema) overlayOf(t *testing.T, m Mutant) map[string]string {
	sources := map[string]string{}
	for _, e := range m.Edits {
		name, err := filepath.Abs(filepath.Join(s.root, e.File))
		require.NoError(t, err)
		if sources[name] == "" {
			sources[name] = s.files[name].source
		}
		require.Equal(t, 1, strings.Count(sources[name], e.Old), "%s must contain once:\n%s", e.File, e.Old)
		sources[name] = strings.Replace(sources[name], e.Old, e.New, 1)
	}
	dir, overlay := t.TempDir(), map[string]string{}
	for name, source := range sources {
		overlay[name] = filepath.Join(dir, filepath.Base(name))
		require.NoError(t, os.WriteFile(overlay[name], []byte(source), 0o600))
	}
	return overlay
}
