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
)

// All changes of functions are in one build. Each change is a copy of its function, and the function calls the copy
// whose number is in the environment. A change of a constant is built separately.

// variable is the environment variable with the number of the change that a binary uses: the change's position in the
// list, from 1.
const variable = "WEIR_MUTANT"

// The constant reached is the environment variable with the name of a file. If the number of the change is -1, a binary
// writes the functions that it has reached to this file.
const reached = "WEIR_MUTANT_REACHED"

// The constant chosen is the Go code that is added to each package.
const chosen = `

import (
	"os"
	"strconv"
	"sync"
)

var mutant = func() int { n, _ := strconv.Atoi(os.Getenv("` + variable + `")); return n }()

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
	overlay string          // the list of files that the build replaces
	unbuilt map[int]bool    // numbers of changes that do not build
	numbers map[string]int  // the numbers of changes, by their names
	lines   map[string][]at // which lines of a file belong to which change
	root    string
	files   []file
}

// The type at says that the lines of a file, up to the line upTo, belong to the change with the given number. If the
// number is 0, they belong to no change.
type at struct{ upTo, number int }

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
	s.lines = map[string][]at{}
	put := func(name, text string) error {
		copied := s.copyOf(name)
		replace[filepath.Join(s.root, name)] = copied
		return os.WriteFile(copied, []byte(text), 0o600)
	}
	packages := map[string]string{}
	for i := range s.files {
		f := &s.files[i]
		folder := filepath.Dir(f.name)
		text, err := s.withAll(f)
		if err != nil {
			return err
		}
		if packages[folder] == "" {
			packages[folder] = "package " + filepath.Base(folder) + chosen
		}
		if filepath.Base(f.name) == "word.go" {
			packages[folder] += stored(f)
		}
		if err := put(f.name, text); err != nil {
			return err
		}
	}
	for folder, text := range packages {
		if err := put(filepath.Join(folder, "mutant.go"), text); err != nil {
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
func (s *schema) withAll(f *file) (string, error) {
	var text strings.Builder
	var copies strings.Builder
	var where []at
	done := 0
	for _, u := range f.units {
		if u.function == nil || len(u.mutations) == 0 {
			continue
		}
		begin, body, end := f.offset(u.function.Pos()), f.offset(u.function.Body.Lbrace)+1, f.offset(u.function.End())
		head, call := signature(f, u.function)
		var choice strings.Builder
		for _, m := range u.mutations {
			number := s.numbers[m.name()]
			if s.unbuilt[number] {
				continue
			}
			suffix := fmt.Sprintf("_%d", number)
			if u.function.Type.Results == nil {
				fmt.Fprintf(&choice, "case %d: %s; return\n", number, call(suffix))
			} else {
				fmt.Fprintf(&choice, "case %d: return %s\n", number, call(suffix))
			}
			where = append(where, at{strings.Count(copies.String(), "\n"), 0})
			copied := f.source[begin:m.from] + m.text + f.source[m.to:end]
			name := f.offset(u.function.Name.End()) - begin
			copies.WriteString(copied[:name] + suffix + copied[name:] + "\n")
			where = append(where, at{strings.Count(copies.String(), "\n"), number})
		}
		text.WriteString(f.source[done:begin] + head + " {\n")
		if choice.Len() > 0 {
			fmt.Fprintf(&text, "if mutant != 0 {\nswitch mutant {\ncase -1: mutantReached(%q)\n%s}\n}\n", u.mutations[0].site(), choice.String())
		}
		done = body
	}
	text.WriteString(f.source[done:] + "\n")
	before := strings.Count(text.String(), "\n")
	for i := range where {
		where[i].upTo += before
	}
	s.lines[filepath.Base(s.copyOf(f.name))] = where
	return text.String() + copies.String(), nil
}

// signature returns the head of a function, with a name for every parameter. The name of a copy of the function ends in
// a suffix. The result call is a function that returns the text of a call of the copy with the given suffix.
func signature(f *file, function *ast.FuncDecl) (head string, call func(suffix string) string) {
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	named := func(list *ast.FieldList) (names []string) {
		for _, field := range list.List {
			if len(field.Names) == 0 {
				names = append(names, fmt.Sprintf("mutant%d", len(edits)))
				edits = append(edits, edit{f.offset(field.Pos()), f.offset(field.Pos()), names[len(names)-1] + " "})
			}
			for _, name := range field.Names {
				if name.Name != "_" {
					names = append(names, name.Name)
					continue
				}
				names = append(names, fmt.Sprintf("mutant%d", len(edits)))
				edits = append(edits, edit{f.offset(name.Pos()), f.offset(name.End()), names[len(names)-1]})
			}
		}
		return names
	}
	on := ""
	if function.Recv != nil {
		on = named(function.Recv)[0] + "."
	}
	args := named(function.Type.Params)
	if list := function.Type.Params.List; len(list) > 0 {
		if _, variadic := list[len(list)-1].Type.(*ast.Ellipsis); variadic {
			args[len(args)-1] += "..."
		}
	}
	begin := f.offset(function.Pos())
	head = f.source[begin:f.offset(function.Body.Lbrace)]
	for _, e := range slices.Backward(edits) {
		head = head[:e.from-begin] + e.text + head[e.to-begin:]
	}
	return strings.TrimSpace(head), func(suffix string) string {
		return on + function.Name.Name + suffix + "(" + strings.Join(args, ", ") + ")"
	}
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

var place = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: (.*)$`)

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
		for _, found := range place.FindAllStringSubmatch(string(out), -1) {
			line, _ := strconv.Atoi(found[2])
			for _, w := range s.lines[filepath.Base(found[1])] {
				if line <= w.upTo {
					if w.number > 0 {
						s.unbuilt[w.number] = true
					}
					break
				}
			}
		}
	}
	return errs
}
