// Package schemata puts many mutants of a Go package into one build, as mutant schemata (Untch, Offutt and Harrold,
// 1993): each mutant is a copy of a function, and the function calls the copy whose number is in the environment.
//
// The package has no state. Its functions may be called concurrently.
package schemata

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Variable is the environment variable with the number of the mutant that a binary uses. Without it, and with 0, the
// binary uses the functions as they are.
const Variable = "WEIR_MUTANT"

// Chosen returns the Go file that each package with mutants needs: the number from the environment. The parameter name
// is the name of the package.
func Chosen(name string) string {
	return "package " + name + `

import (
	"os"
	"strconv"
)

var chosenMutant = func() int { n, _ := strconv.Atoi(os.Getenv("` + Variable + `")); return n }()
`
}

// A Function is a function of a file and its mutants.
type Function struct {
	Decl   *ast.FuncDecl // has a body
	Copies []Copy
	Cases  string // more cases of the switch that chooses a copy, as Go text; may be empty
}

// A Copy is a function with edits, and the number of the mutant to which it belongs, from 1.
type Copy struct {
	Number int
	Edits  []Edit
}

// An Edit replaces the text between two offsets of the file, which are within the function's body.
type Edit struct {
	From, To int
	Text     string
}

// A Place says that the lines of a text after those of the place before, up to the line Last, belong to the mutant with
// the given number. If the number is 0, they belong to no mutant.
type Place struct{ Last, Number int }

// Text returns the text of a file with the copies of its functions, and the places of the copies. The functions are in
// the order of the file.
func Text(source string, positions *token.FileSet, functions []Function) (string, []Place) {
	offset := func(p token.Pos) int { return positions.Position(p).Offset }
	var text, copies strings.Builder
	var places []Place
	written := 0
	for _, f := range functions {
		begin, body, end := offset(f.Decl.Pos()), offset(f.Decl.Body.Lbrace)+1, offset(f.Decl.End())
		head, call := signature(source[begin:body-1], offset, f.Decl)
		cases := f.Cases
		for _, c := range f.Copies {
			suffix := fmt.Sprintf("_%d", c.Number)
			if f.Decl.Type.Results == nil {
				cases += fmt.Sprintf("case %d: %s; return\n", c.Number, call(suffix))
			} else {
				cases += fmt.Sprintf("case %d: return %s\n", c.Number, call(suffix))
			}
			places = append(places, Place{strings.Count(copies.String(), "\n"), 0})
			name := offset(f.Decl.Name.End())
			copies.WriteString(source[begin:name] + suffix)
			copied := name
			edits := slices.SortedStableFunc(slices.Values(c.Edits), func(a, b Edit) int { return cmp.Compare(a.From, b.From) })
			for _, e := range edits {
				copies.WriteString(source[copied:e.From] + e.Text)
				copied = e.To
			}
			copies.WriteString(source[copied:end] + "\n")
			places = append(places, Place{strings.Count(copies.String(), "\n"), c.Number})
		}
		text.WriteString(source[written:begin] + head + " {\n")
		if len(f.Copies) > 0 {
			text.WriteString("if chosenMutant != 0 {\nswitch chosenMutant {\n" + cases + "}\n}\n")
		}
		written = body
	}
	text.WriteString(source[written:] + "\n")
	before := strings.Count(text.String(), "\n")
	for i := range places {
		places[i].Last += before
	}
	return text.String() + copies.String(), places
}

// signature returns the head of a function, with a name for every parameter. The parameter head is its text. The result
// call is a function that returns the text of a call of the copy whose name ends in the given suffix.
func signature(head string, offset func(token.Pos) int, function *ast.FuncDecl) (_ string, call func(suffix string) string) {
	begin := offset(function.Pos())
	var edits []Edit
	named := func(list *ast.FieldList) (names []string) {
		for _, field := range list.List {
			if len(field.Names) == 0 {
				names = append(names, fmt.Sprintf("mutant%d", len(edits)))
				edits = append(edits, Edit{offset(field.Pos()), offset(field.Pos()), names[len(names)-1] + " "})
			}
			for _, name := range field.Names {
				if name.Name != "_" {
					names = append(names, name.Name)
					continue
				}
				names = append(names, fmt.Sprintf("mutant%d", len(edits)))
				edits = append(edits, Edit{offset(name.Pos()), offset(name.End()), names[len(names)-1]})
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
	for _, e := range slices.Backward(edits) {
		head = head[:e.From-begin] + e.Text + head[e.To-begin:]
	}
	return strings.TrimSpace(head), func(suffix string) string {
		return on + function.Name.Name + suffix + "(" + strings.Join(args, ", ") + ")"
	}
}
