package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mutation is a small change of a file: it replaces the text between two offsets.
type mutation struct {
	file     string // relative to the root
	function string // with the type of its receiver; "const" in a declaration of constants
	what     string
	from, to int
	text     string
	old      string
	line     string // the line that contains the change
	shown    string // the changed text for the name; "" if the name already shows it
	nth      int    // how many earlier changes have the same name
	key      string // hash of the function's text without and with the change: see keyOf
}

// name identifies the change, even if lines are added before it.
func (m mutation) name() string {
	change := ""
	if m.shown != "" {
		change = ": " + oneLine(m.old) + " -> " + m.shown
	}
	name := fmt.Sprintf("%s %s: %s%s in %s", m.file, m.function, m.what, change, m.line)
	if m.nth > 0 {
		name += fmt.Sprintf(" (%d)", m.nth+1)
	}
	return name
}

func (m mutation) isConstant() bool { return m.function == "const" }

// isOfEngine reports whether the change is in package engine. The changes of this package were never tried completely.
func (m mutation) isOfEngine() bool { return strings.HasPrefix(m.file, "engine/") }

// isNew reports whether the kind of the change was never tried completely. It also returns true if the change is in
// package engine and not noticed yet. If such a change survives, it may never have been examined.
func (m mutation) isNew() bool {
	if m.isOfEngine() {
		return !noticed[m.key]
	}
	switch m.what {
	case "another variable", "another field", "swap arguments", "nothing of it", "the first", "begin with nothing", "read it here", "a flag too late":
		return true
	case "another operator":
		return !slices.Contains([]string{"<", "<=", ">", ">=", "==", "!=", "+", "-"}, m.old)
	}
	return strings.HasPrefix(m.what, "read ") && !slices.ContainsFunc([]string{".Load()", "Watermark()"}, func(call string) bool {
		return strings.Contains(m.what, call+" before ")
	})
}

func (m mutation) site() string { return m.file + " " + m.function }

// keyOf returns the key of a change in a function or declaration. Comments and white space of the function do not
// affect the key.
func (m mutation) keyOf(source string, of ast.Decl, f *file) string {
	begin, end := f.offset(of.Pos()), f.offset(of.End())
	whole := source[begin:m.from] + m.text + source[m.to:end]
	sum := sha256.Sum256([]byte(m.site() + "\n" + tokens(source[begin:end]) + "\n" + tokens(whole)))
	return hex.EncodeToString(sum[:5])
}

// tokens returns a Go text without comments, and with one space between tokens.
func tokens(text string) string {
	var s scanner.Scanner
	var out strings.Builder
	s.Init(token.NewFileSet().AddFile("", -1, len(text)), []byte(text), nil, 0)
	for {
		_, t, literal := s.Scan()
		switch {
		case t == token.EOF:
			return out.String()
		case t == token.SEMICOLON || literal == "": // the end of a line may also be a semicolon
			literal = t.String()
		}
		out.WriteString(literal + " ")
	}
}

func (m mutation) changed(source string) string { return source[:m.from] + m.text + source[m.to:] }

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	return text
}

// A unit is a function or a declaration of constants, with its changes.
type unit struct {
	function  *ast.FuncDecl // nil for a declaration of constants
	mutations []mutation
}

type file struct {
	name, source string // the name is relative to the root
	positions    *token.FileSet
	units        []unit
}

// files returns the files of the packages that this system builds, without test files.
func files(root string, packages []string) (all []file, err error) {
	imports, err := exported(root, packages)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		names, err := sourcesOf(root, p)
		if err != nil {
			return nil, err
		}
		sources := map[string]string{}
		for _, base := range names {
			source, err := os.ReadFile(filepath.Join(root, p, base))
			if err != nil {
				return nil, err
			}
			sources[filepath.Join(p, base)] = string(source)
		}
		parsed, err := parse(sources)
		if err != nil {
			return nil, err
		}
		if err := parsed.check(imports); err != nil {
			return nil, err
		}
		for _, base := range names {
			if !strings.HasPrefix(base, "export_") && base != "memory_other.go" {
				all = append(all, parsed.file(filepath.Join(p, base)))
			}
		}
	}
	return all, nil
}

func mutations(all []file) (found []mutation) {
	for _, f := range all {
		for _, u := range f.units {
			found = append(found, u.mutations...)
		}
	}
	return found
}

// A finder collects the changes of a unit.
type finder struct {
	file     *file
	function string
	found    []mutation
	typed    typed
}

func ofFile(name, source string) (file, error) {
	parsed, err := parse(map[string]string{name: source})
	if err != nil {
		return file{}, err
	}
	return parsed.file(name), nil
}

func (p *parsed) file(name string) file {
	f, source, tree := file{name: name, source: p.sources[name], positions: p.positions}, p.sources[name], p.trees[name]
	known := map[string]int{}
	for _, d := range tree.Decls {
		of := finder{file: &f, function: "const", typed: typed{parsed: p, members: map[*ast.Ident]bool{}}}
		function, _ := d.(*ast.FuncDecl)
		if function != nil && function.Body != nil && function.Name.Name != "String" { // String is written for people
			of.function = function.Name.Name
			if function.Recv != nil {
				of.function = receiver(function) + "." + of.function
			}
			ast.Inspect(function.Body, of.visit)
		} else if general, ok := d.(*ast.GenDecl); ok && general.Tok == token.CONST {
			ast.Inspect(general, of.visit)
		}
		for i := range of.found {
			m := &of.found[i]
			name := m.name()
			m.nth, known[name] = known[name], known[name]+1
			m.key = m.keyOf(source, d, &f)
		}
		if len(of.found) > 0 {
			f.units = append(f.units, unit{function, of.found})
		}
	}
	return f
}

func receiver(function *ast.FuncDecl) string {
	expr := function.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	return expr.(*ast.Ident).Name
}

func (f *file) offset(p token.Pos) int   { return f.positions.Position(p).Offset }
func (f *file) textOf(n ast.Node) string { return f.source[f.offset(n.Pos()):f.offset(n.End())] }

func (f *finder) add(what string, from, to token.Pos, text string) {
	source := f.file.source
	m := mutation{file: f.file.name, function: f.function, what: what, from: f.file.offset(from), to: f.file.offset(to), text: text}
	m.old, m.shown = source[m.from:m.to], oneLine(text)
	begin := strings.LastIndexByte(source[:m.from], '\n') + 1
	m.line, _, _ = strings.Cut(source[begin:], "\n")
	m.line, _, _ = strings.Cut(m.line, "//") // a comment is not part of the line
	m.line = strings.TrimSpace(m.line)
	f.found = append(f.found, m)
}

func (f *finder) replace(what string, n ast.Node, text string) { f.add(what, n.Pos(), n.End(), text) }

// operators has the replacements for each operator.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "/", token.SHL: ">>", token.SHR: "<<",
	token.AND: "|", token.OR: "&", token.AND_NOT: "&", token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=",
	token.MUL_ASSIGN: "/=", token.SHL_ASSIGN: ">>=", token.OR_ASSIGN: "&=", token.AND_ASSIGN: "|=",
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.condition(n.Cond)
		f.tooLate(n)
	case *ast.AssignStmt:
		f.assignment(n)
	case *ast.SelectorExpr:
		f.otherField(n)
		f.typed.members[n.Sel] = true
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok {
			f.typed.members[key] = true
		}
	case *ast.CompositeLit:
		f.zeros(n.Elts)
	case *ast.IndexExpr:
		f.first(n)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, condition := range c.(*ast.CaseClause).List {
					f.condition(condition)
				}
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			f.without(n, n.X, n.Y)
			f.without(n, n.Y, n.X)
		} else if other, ok := operators[n.Op]; ok {
			f.add("another operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other)
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			f.replace("one more", n, "("+n.Value+"+1)")
			f.replace("one less", n, "("+n.Value+"-1)")
		}
	case *ast.Ident:
		if n.Name == "true" {
			f.replace("the opposite", n, "false")
		} else if n.Name == "false" {
			f.replace("the opposite", n, "true")
		}
		f.otherVariable(n)
	case *ast.CallExpr:
		f.call(n)
		f.swapped(n)
		f.zeros(n.Args)
	case *ast.BranchStmt:
		f.replace("drop a statement", n, "")
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	}
	return true
}

// condition adds two changes: the condition is always true, or always false. These changes are harder to notice than a
// negated condition, because a negated condition differs from the code in more cases.
func (f *finder) condition(c ast.Expr) {
	text := f.file.textOf(c) // the condition stays in the text, because its variables must be used
	f.replace("always", c, "(("+text+") || true)")
	f.shown("true")
	f.replace("never", c, "(("+text+") && false)")
	f.shown("false")
}

// without removes an operand. Its variables stay in the text, because Go requires that they are used.
func (f *finder) without(n, operand, other ast.Expr) {
	f.replace("drop an operand", n, "(("+f.file.textOf(operand)+") || false && ("+f.file.textOf(other)+"))")
	f.shown(f.file.textOf(operand))
}

// The method shown sets the text that describes the last change.
func (f *finder) shown(text string) { f.found[len(f.found)-1].shown = oneLine(text) }

// transitions has the methods of atomicbucket.Word that are compare-and-swaps. Each method has two variants: a store,
// and a method that does nothing and reports success. See stored.
var transitions = []string{"Claim", "Commit", "Abort", "Move", "Convert", "Free"}

// call weakens a compare-and-swap or a transition to a store, or removes it. If the call is min or max, an operand
// replaces the call.
func (f *finder) call(c *ast.CallExpr) {
	if name, ok := c.Fun.(*ast.Ident); ok && (name.Name == "min" || name.Name == "max") {
		for _, arg := range c.Args {
			f.replace("one operand", c, "("+f.file.textOf(arg)+")")
		}
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	on := f.file.textOf(s.X)
	if s.Sel.Name == "CompareAndSwap" && len(c.Args) == 2 {
		f.replace("a store for a compare-and-swap", c, fmt.Sprintf("func() bool { %s.Store(%s); return true }()", on, f.file.textOf(c.Args[1])))
		f.replace("no compare-and-swap", c, "true")
	}
	if slices.Contains(transitions, s.Sel.Name) && (strings.HasSuffix(on, ".state") || on == "word") {
		f.replace("a store for a transition", s.Sel, s.Sel.Name+"Stored")
		f.replace("no transition", s.Sel, s.Sel.Name+"Unmade")
	}
}
