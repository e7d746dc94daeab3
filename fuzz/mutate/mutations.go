package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// A mutation is a small change of a file: the text from one offset to another becomes another.
type mutation struct {
	file     string // below the root
	function string
	what     string
	from, to int
	text     string
	old      string
	line     string // in which it is
	source   string // the whole file
}

// name tells the change apart from all others, also when lines are added before it.
func (m mutation) name() string {
	return fmt.Sprintf("%s %s: %s: %s -> %s in %s", m.file, m.function, m.what, oneLine(m.old), oneLine(m.text), m.line)
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	return text
}

// mutations returns every change of the packages, in the order of the text.
func mutations(root string, packages []string) (all []mutation, err error) {
	for _, p := range packages {
		files, err := filepath.Glob(filepath.Join(root, p, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			base := filepath.Base(file)
			if strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "memory") || strings.HasPrefix(base, "export_") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := ofFile(filepath.Join(p, base), string(source))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// A finder collects the changes of a file.
type finder struct {
	file, source, function string
	positions              *token.FileSet
	found                  []mutation
}

// ofFile returns every change of a file.
func ofFile(name, source string) ([]mutation, error) {
	f := &finder{file: name, source: source, positions: token.NewFileSet()}
	tree, err := parser.ParseFile(f.positions, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range tree.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && function.Body != nil {
			f.function = function.Name.Name
			if f.function != "String" { // what is written for people
				ast.Inspect(function.Body, f.visit)
			}
		} else if general, ok := d.(*ast.GenDecl); ok && general.Tok == token.CONST {
			f.function = "const"
			ast.Inspect(general, f.visit)
		}
	}
	return f.found, nil
}

func (f *finder) offset(p token.Pos) int           { return f.positions.Position(p).Offset }
func (f *finder) textOf(from, to token.Pos) string { return f.source[f.offset(from):f.offset(to)] }

func (f *finder) add(what string, from, to token.Pos, text string) {
	m := mutation{file: f.file, function: f.function, what: what, from: f.offset(from), to: f.offset(to), text: text, source: f.source}
	m.old = f.source[m.from:m.to]
	begin := strings.LastIndexByte(f.source[:m.from], '\n') + 1
	m.line, _, _ = strings.Cut(f.source[begin:], "\n")
	m.line = strings.TrimSpace(m.line)
	f.found = append(f.found, m)
}

// comparisons are what a comparison becomes.
var comparisons = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.ADD: "-", token.SUB: "+",
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond)
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			f.add("drop an operand", n.Pos(), n.End(), f.textOf(n.X.Pos(), n.X.End()))
			f.add("drop an operand", n.Pos(), n.End(), f.textOf(n.Y.Pos(), n.Y.End()))
		} else if other, ok := comparisons[n.Op]; ok {
			f.add("another operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other)
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			f.add("one more", n.Pos(), n.End(), "("+n.Value+"+1)")
			f.add("one less", n.Pos(), n.End(), "("+n.Value+"-1)")
		}
	case *ast.CallExpr:
		f.call(n)
	case *ast.BranchStmt:
		f.add("drop a statement", n.Pos(), n.End(), "")
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	}
	return true
}

func (f *finder) condition(c ast.Expr) {
	f.add("negate a condition", c.Pos(), c.End(), "!("+f.textOf(c.Pos(), c.End())+")")
}

// call weakens a compare-and-swap to a store.
func (f *finder) call(c *ast.CallExpr) {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "CompareAndSwap" || len(c.Args) != 2 {
		return
	}
	f.add("a store for a compare-and-swap", c.Pos(), c.End(), fmt.Sprintf("func() bool { %s.Store(%s); return true }()",
		f.textOf(s.X.Pos(), s.X.End()), f.textOf(c.Args[1].Pos(), c.Args[1].End())))
}

// statements drops each that is a call, and exchanges each with the next one.
func (f *finder) statements(list []ast.Stmt) {
	for i, s := range list {
		if _, isCall := s.(*ast.ExprStmt); isCall {
			f.add("drop a statement", s.Pos(), s.End(), "")
		}
		if i+1 < len(list) && simple(s) && simple(list[i+1]) {
			next := list[i+1]
			f.add("exchange two statements", s.Pos(), next.End(), f.textOf(next.Pos(), next.End())+"; "+f.textOf(s.Pos(), s.End()))
		}
	}
}

func simple(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt:
		return true
	}
	return false
}
