package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/internal/schemata"
)

// All changes of functions are in one build (package schemata). The number of a change is its position in the list,
// from 1. A change of a constant is built separately.

// The constant reached is the environment variable with the name of a file. If the number of the change is -1, a binary
// writes the functions that it has reached to this file.
const reached = "WEIR_MUTANT_REACHED"

// The constant helpers is the Go code that changes of each package use.
const helpers = `

import (
	"os"
	"sync"
)

var mutantsReached sync.Map

func mutantZero[T any](T) (zero T) { return zero }

func mutantNow[T any](_, now T) T { return now }

func mutantReached(function string) {
	if _, known := mutantsReached.LoadOrStore(function, true); !known {
		f, err := os.OpenFile(os.Getenv("` + reached + `"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		f.WriteString(function + "\n")
		f.Close()
	}
}
`

// A schema has the packages with all changes of functions.
type schema struct {
	dir     string
	overlay string                      // the list of files that the build replaces
	unbuilt map[int]bool                // numbers of changes that do not build
	numbers map[string]int              // the numbers of changes, by their names
	places  map[string][]schemata.Place // which lines of a file belong to which change
	root    string
	files   []file
}

// newSchema writes the packages with all changes into a directory, and numbers the changes in the order of the files.
func newSchema(root, dir string, all []file) (*schema, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	s := &schema{dir: dir, root: root, files: all, unbuilt: map[int]bool{}, numbers: map[string]int{}}
	for i, m := range mutations(all) {
		s.numbers[m.name()] = i + 1
	}
	for {
		if err := s.write(); err != nil {
			return nil, err
		}
		known := len(s.unbuilt)
		if err := s.build(); err == nil {
			return s, nil
		} else if len(s.unbuilt) == known {
			return nil, err
		}
	}
}

func (s *schema) write() error {
	replace := map[string]string{}
	s.places = map[string][]schemata.Place{}
	put := func(name, text string) error {
		copied := s.copyOf(name)
		replace[filepath.Join(s.root, name)] = copied
		return os.WriteFile(copied, []byte(text), 0o600)
	}
	packages := map[string]string{}
	for i := range s.files {
		f := &s.files[i]
		folder := filepath.Dir(f.name)
		if packages[folder] == "" {
			packages[folder] = "package " + filepath.Base(folder) + helpers
		}
		if filepath.Base(f.name) == "word.go" {
			packages[folder] += stored(f)
		}
		if err := put(f.name, s.withAll(f)); err != nil {
			return err
		}
	}
	for folder, text := range packages {
		// Go initializes the variables of the file 0_... first.
		if err := errors.Join(put(filepath.Join(folder, "0_mutant_chosen.go"), schemata.Chosen(filepath.Base(folder))),
			put(filepath.Join(folder, "mutant_helpers.go"), text)); err != nil {
			return err
		}
	}
	s.overlay = filepath.Join(s.dir, "overlay.json")
	return writeOverlay(s.overlay, replace)
}

func (s *schema) copyOf(name string) string {
	return filepath.Join(s.dir, strings.ReplaceAll(name, "/", "_"))
}

func writeOverlay(name string, replace map[string]string) error {
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(name, list, 0o600)
}

// withAll returns a file's text with the copies of its functions, and stores their places.
func (s *schema) withAll(f *file) string {
	var functions []schemata.Function
	for _, u := range f.units {
		if u.function == nil || len(u.mutations) == 0 {
			continue
		}
		function := schemata.Function{Decl: u.function, Cases: fmt.Sprintf("case -1: mutantReached(%q)\n", u.mutations[0].site())}
		for _, m := range u.mutations {
			if number := s.numbers[m.name()]; !s.unbuilt[number] {
				function.Copies = append(function.Copies, schemata.Copy{Number: number, Edits: []schemata.Edit{{From: m.from, To: m.to, Text: m.text}}})
			}
		}
		functions = append(functions, function)
	}
	text, places := schemata.Text(f.source, f.positions, functions)
	s.places[filepath.Base(s.copyOf(f.name))] = places
	return text
}

// stored returns two methods for each transition of word.go: one is a store, and the other does nothing.
func stored(f *file) (text string) {
	tree, err := parser.ParseFile(f.positions, f.name, f.source, parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	for _, d := range tree.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || !slices.Contains(transitions, function.Name.Name) {
			continue
		}
		whole, name := f.textOf(function), function.Name.Name
		for _, c := range callsOf(function.Body, []string{"CompareAndSwap"}) {
			cas := f.textOf(c)
			renamed := func(suffix string) string { return strings.Replace(whole, ") "+name+"(", ") "+name+suffix+"(", 1) }
			store := fmt.Sprintf("func() bool { w.w.Store(%s); return true }()", f.textOf(c.Args[1]))
			text += "\n" + strings.Replace(renamed("Stored"), cas, store, 1) + "\n" + strings.Replace(renamed("Unmade"), cas, "true", 1) + "\n"
		}
	}
	return text
}

var faulty = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: (.*)$`)

func (s *schema) build() error {
	folders := map[string]bool{}
	var errs error
	for _, f := range s.files {
		folder := "./" + filepath.Dir(f.name)
		if folders[folder] {
			continue
		}
		folders[folder] = true
		c := exec.Command("go", "build", "-gcflags=-e", "-overlay", s.overlay, folder)
		c.Dir = s.root
		out, err := c.CombinedOutput()
		if err == nil {
			continue
		}
		errs = errors.Join(errs, fmt.Errorf("build %s: %w\n%s", folder, err, bytes.TrimSpace(out)))
		for _, found := range faulty.FindAllStringSubmatch(string(out), -1) {
			line, _ := strconv.Atoi(found[2])
			for _, place := range s.places[filepath.Base(found[1])] {
				if line <= place.Last {
					if place.Number > 0 {
						s.unbuilt[place.Number] = true
					}
					break
				}
			}
		}
	}
	return errs
}
