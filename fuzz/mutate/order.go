package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// statements adds the changes of a list of statements: it removes a statement, exchanges adjacent accesses to shared
// words, or moves a read of a shared word to an earlier place.
func (f *finder) statements(list []ast.Stmt) {
	for i, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt:
			f.replace("drop a statement", s, "")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.replace("drop a statement", s, "")
			}
		}
		if i+1 < len(list) && simple(s) && simple(list[i+1]) && effective(s) && effective(list[i+1]) {
			next := list[i+1]
			f.add("exchange two statements", s.Pos(), next.End(), f.file.textOf(next)+"; "+f.file.textOf(s))
		}
		for j := range i {
			if effective(list[j]) {
				f.earlier(list[j:i], s)
			}
		}
		f.later(s, list[i+1:])
	}
}

func simple(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt:
		return true
	}
	return false
}

// loads has the methods that read a word and do nothing else.
var loads = []string{
	"Load", "Watermark", "Ends", "current", "record", "latestTimes", "maxAhead", "clock", "nanos", "exactNanos", "latest", "latestCharge",
	"exact", "now", "policies", "Plan", "countBegun",
}

// effects has the methods that read or change words that goroutines share.
var effects = append([]string{"Store", "Add", "CompareAndSwap", "Publish", "Clear", "convert", "catchUp", "callTimes", "takeOver", "raise", "raiseTo",
	"advance", "record", "recordAt", "Hit", "hit", "insert", "miss", "settle", "publish", "decideOverflow", "findVictim", "debt", "cover",
	"extend", "beginLowering", "endLowering", "pass", "sweepAll", "visit", "sweepChunk", "adopt", "flush", "Flush", "Refund", "used", "drop",
	"ticksLeft", "isBeyond", "probeBound",
	"HitQuota", "HitCharge", "MissQuota", "TakeAt", "Charge", "RefundOf", "RefundAt", "PeekAt", "ReserveAt", "Adopt", "Sweep", "Reset",
	"take", "takeSlowly", "takeAt", "takeReceipt", "Charge", "Peek", "giveBack", "settle", "Settle", "reserve", "Swap", "observe",
	"recordPromise", "recordLead", "recordAt", "hitAny"},
	slices.Concat(transitions, loads)...)

// effective reports whether a statement reads or changes words that goroutines share.
func effective(s ast.Stmt) bool { return len(callsOf(s, effects)) > 0 }

func callsOf(n ast.Node, names []string) (calls []*ast.CallExpr) {
	ast.Inspect(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok && slices.Contains(names, s.Sel.Name) {
				calls = append(calls, c)
			}
		}
		return true
	})
	return calls
}

// earlier moves the first read of a shared word in s before the preceding statements.
func (f *finder) earlier(before []ast.Stmt, s ast.Stmt) {
	var head ast.Node
	switch s := s.(type) {
	case *ast.IfStmt:
		head = s.Cond
		if s.Init != nil {
			head = s.Init
		}
	case *ast.AssignStmt, *ast.ReturnStmt, *ast.ExprStmt:
		head = s
		if len(before) == 1 && simple(before[0]) && simple(s) {
			return // the change that exchanges the two statements is the same
		}
	case *ast.SwitchStmt:
		if head = s.Init; s.Init == nil {
			return
		}
	default:
		return
	}
	for _, c := range callsOf(head, loads) {
		from, to := f.file.offset(c.Pos()), f.file.offset(c.End())
		begin, end := f.file.offset(before[0].Pos()), f.file.offset(s.End())
		source := f.file.source
		what := "read " + oneLine(source[from:to]) + " before " + oneLine(strings.SplitN(f.file.textOf(before[0]), "\n", 2)[0])
		f.add(what, before[0].Pos(), s.End(), "early := "+source[from:to]+"\n"+source[begin:from]+"early"+source[to:end])
		last := &f.found[len(f.found)-1]
		line, _, _ := strings.Cut(f.file.textOf(s), "\n")
		line, _, _ = strings.Cut(line, "//")
		last.shown, last.line = "", strings.TrimSpace(line)
	}
}

// later adds changes for a statement that reads shared words into new variables. A change lets a later use of a
// variable read the word again.
func (f *finder) later(s ast.Stmt, after []ast.Stmt) {
	define, ok := s.(*ast.AssignStmt)
	if !ok || define.Tok != token.DEFINE || len(define.Lhs) != len(define.Rhs) {
		return
	}
	for i, read := range define.Rhs {
		if len(callsOf(read, loads)) > 0 {
			f.readAgain(f.file.textOf(define.Lhs[i]), f.file.textOf(read), after)
		}
	}
}

// readAgain replaces each use of a variable by another read. It does this in the statements in the argument after.
func (f *finder) readAgain(name, read string, after []ast.Stmt) {
	for _, next := range after {
		ast.Inspect(next, func(n ast.Node) bool {
			if assign, ok := n.(*ast.AssignStmt); ok && slices.ContainsFunc(assign.Lhs, func(e ast.Expr) bool { return f.file.textOf(e) == name }) {
				return false
			}
			if id, ok := n.(*ast.Ident); ok && id.Name == name {
				f.replace("read it here", id, "mutantNow("+name+", "+read+")")
			}
			return true
		})
	}
}

// tooLate adds changes for a flag that the condition of an if statement tests and sets in one call. The changed code
// sets the flag only after the statements that follow.
func (f *finder) tooLate(s *ast.IfStmt) {
	f.endsTooLate(s)
	c, ok := s.Cond.(*ast.CallExpr)
	if !ok {
		return
	}
	of, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	on, body := f.file.textOf(of.X), strings.TrimPrefix(f.file.textOf(s.Body), "{")
	switch {
	case on == "atomic" && strings.HasPrefix(of.Sel.Name, "CompareAndSwap") && len(c.Args) == 3:
		kind := strings.TrimPrefix(of.Sel.Name, "CompareAndSwap")
		flag := f.file.textOf(c.Args[0])
		f.add("a flag too late", s.Cond.Pos(), s.Body.End(), "atomic.Load"+kind+"("+flag+") == "+f.file.textOf(c.Args[1])+
			" { defer atomic.Store"+kind+"("+flag+", "+f.file.textOf(c.Args[2])+")\n"+body)
	case of.Sel.Name == "Swap" && len(c.Args) == 1 && s.Else == nil && s.Init == nil:
		f.add("a flag too late", s.Cond.Pos(), s.Body.End(), on+".Load() {"+body+"; defer "+on+".Store("+f.file.textOf(c.Args[0])+")")
	}
}

// endsTooLate does the same as tooLate for a method that only tests and sets the flag: "if !r.end() { return }".
func (f *finder) endsTooLate(s *ast.IfStmt) {
	not, ok := s.Cond.(*ast.UnaryExpr)
	if !ok || not.Op != token.NOT {
		return
	}
	c, ok := not.X.(*ast.CallExpr)
	if !ok || len(c.Args) > 0 {
		return
	}
	of, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	flag, kind, set, was := f.typed.flagOf(of.Sel.Name)
	if flag == "" {
		return
	}
	address := "&" + f.file.textOf(of.X) + "." + flag
	f.add("a flag too late", s.Pos(), s.End(), f.file.textOf(s)+"\natomic.Store"+kind+"("+address+", "+was+
		"); defer atomic.Store"+kind+"("+address+", "+set+")")
}
