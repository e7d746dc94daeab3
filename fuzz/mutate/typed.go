package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// A parsed has the syntax trees of a package, and its types if they are known.
type parsed struct {
	positions *token.FileSet
	sources   map[string]string
	trees     map[string]*ast.File
	info      types.Info
	scope     *types.Scope
}

func parse(sources map[string]string) (*parsed, error) {
	p := &parsed{positions: token.NewFileSet(), sources: sources, trees: map[string]*ast.File{}}
	for name, source := range sources {
		tree, err := parser.ParseFile(p.positions, name, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.trees[name] = tree
	}
	return p, nil
}

func (p *parsed) check(imports types.Importer) error {
	p.info = types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	var trees []*ast.File
	path := ""
	for _, tree := range p.trees {
		trees, path = append(trees, tree), tree.Name.Name
	}
	checked, err := (&types.Config{Importer: imports}).Check(path, p.positions, trees, &p.info)
	if err != nil {
		return err
	}
	p.scope = checked.Scope()
	return nil
}

// exported returns an importer from the go command's export data for everything that packages import.
func exported(root string, packages []string) (types.Importer, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	c := exec.Command("go", args...)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	files := map[string]string{}
	for line := range bytes.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), "\t")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }), nil
}

// sourcesOf returns the files of a package that this system builds.
func sourcesOf(root, folder string) ([]string, error) {
	c := exec.Command("go", "list", "-f", "{{join .GoFiles \"\\n\"}}", "./"+folder)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", folder, err)
	}
	return strings.Fields(string(out)), nil
}

// typed has the data for changes that depend on types.
type typed struct {
	*parsed
	members  map[*ast.Ident]bool // identifiers after a dot or before a colon, which are not variables
	assigned []ast.Expr
}

func (t *typed) known(e ast.Expr) types.Type {
	if t.scope == nil {
		return nil
	}
	return t.info.TypeOf(e)
}

// flagOf returns the parts of a method that only tests and sets a flag, such as "return atomic.SwapUint32(&r.ended, 1)
// == 0". For any other method, it returns empty strings.
func (p *parsed) flagOf(method string) (flag, kind, set, was string) {
	for name, tree := range p.trees {
		text := func(n ast.Node) string {
			return p.sources[name][p.positions.Position(n.Pos()).Offset:p.positions.Position(n.End()).Offset]
		}
		for _, d := range tree.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || function.Recv == nil || function.Name.Name != method || function.Body == nil {
				continue
			}
			if m := flagSet.FindStringSubmatch(text(function.Body)); m != nil {
				return m[2], m[1], m[3], m[4]
			}
		}
	}
	return "", "", "", ""
}

var flagSet = regexp.MustCompile(`^\{\s*return atomic\.Swap(\w+)\(&\w+\.(\w+), (\w+)\) == (\w+)\s*\}$`)

// most is the largest number of replacements for a variable or a field.
const most = 2

// otherVariable replaces a variable by the variables of the same type that are declared last before its use.
func (f *finder) otherVariable(id *ast.Ident) {
	if f.typed.scope == nil || f.typed.members[id] || slices.ContainsFunc(f.typed.assigned, func(e ast.Expr) bool { return e == id }) {
		return
	}
	is, ok := f.typed.info.Uses[id].(*types.Var)
	if !ok || is.IsField() || is.Parent() == f.typed.scope {
		return
	}
	var others []*types.Var
	here := f.typed.scope.Innermost(id.Pos())
	for s := here; s != nil && s != f.typed.scope; s = s.Parent() {
		for _, name := range s.Names() {
			_, seen := here.LookupParent(name, id.Pos())
			other, ok := seen.(*types.Var)
			if ok && other != is && name != "_" && s.Lookup(name) == seen && types.Identical(is.Type(), other.Type()) {
				others = append(others, other)
			}
		}
	}
	slices.SortFunc(others, func(a, b *types.Var) int { return int(b.Pos() - a.Pos()) })
	for _, other := range others[:min(most, len(others))] {
		f.replace("another variable", id, other.Name())
	}
}

// otherField replaces a field by other fields of the same type.
func (f *finder) otherField(s *ast.SelectorExpr) {
	if f.typed.scope == nil {
		return
	}
	selection := f.typed.info.Selections[s]
	if selection == nil || selection.Kind() != types.FieldVal {
		return
	}
	of := selection.Recv()
	if pointer, ok := of.Underlying().(*types.Pointer); ok {
		of = pointer.Elem()
	}
	fields, ok := of.Underlying().(*types.Struct)
	if !ok {
		return
	}
	n := 0
	for field := range fields.Fields() {
		if n < most && field != selection.Obj() && field.Name() != "_" && types.Identical(field.Type(), selection.Type()) {
			f.replace("another field", s.Sel, field.Name())
			n++
		}
	}
}

func (f *finder) swapped(c *ast.CallExpr) {
	for i := range max(len(c.Args)-1, 0) {
		a, b := c.Args[i], c.Args[i+1]
		x, y := f.typed.known(a), f.typed.known(b)
		if x != nil && y != nil && types.Identical(x, y) && f.file.textOf(a) != f.file.textOf(b) && !isTest(c) {
			f.add("swap arguments", a.Pos(), b.End(), f.file.textOf(b)+", "+f.file.textOf(a))
		}
	}
}

// isTest reports whether the order of a call's arguments does not matter, as for min and max.
func isTest(c *ast.CallExpr) bool {
	name, ok := c.Fun.(*ast.Ident)
	return ok && (name.Name == "min" || name.Name == "max")
}

// zeros replaces a struct by its zero value. For example, it replaces a quota by the quota of tier 0.
func (f *finder) zeros(list []ast.Expr) {
	for _, e := range list {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Value
		}
		t := f.typed.known(e)
		if t == nil {
			continue
		}
		if _, literal := e.(*ast.CompositeLit); literal {
			continue
		}
		if _, ok := t.Underlying().(*types.Struct); ok {
			f.replace("nothing of it", e, "mutantZero("+f.file.textOf(e)+")")
		}
	}
}

// The method first replaces an element of a list by the list's first element.
func (f *finder) first(n *ast.IndexExpr) {
	if t := f.typed.known(n.X); t != nil && !f.typed.info.Types[n.Index].IsType() {
		switch t.Underlying().(type) {
		case *types.Slice, *types.Array, *types.Pointer:
			if _, literal := n.Index.(*ast.BasicLit); !literal {
				f.replace("the first", n.Index, "mutantZero("+f.file.textOf(n.Index)+")")
			}
		}
	}
}

// assignment changes an assignment operator, and the initial value of a variable.
func (f *finder) assignment(s *ast.AssignStmt) {
	f.typed.assigned = append(f.typed.assigned, s.Lhs...)
	if other, ok := operators[s.Tok]; ok {
		f.add("another operator", s.TokPos, s.TokPos+token.Pos(len(s.Tok.String())), other)
	}
	if s.Tok == token.DEFINE && len(s.Lhs) == 1 && len(s.Rhs) == 1 && f.typed.scope != nil {
		switch s.Rhs[0].(type) {
		case *ast.CompositeLit, *ast.BasicLit, *ast.FuncLit:
		default:
			f.replace("begin with nothing", s.Rhs[0], "mutantZero("+f.file.textOf(s.Rhs[0])+")")
		}
	}
}
