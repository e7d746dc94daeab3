package schemata_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/schemata"
)

const source = `package main

import "fmt"

type list[T any] []T

func (l list[T]) last(T, ...int) (T, bool) {
	return l[len(l)-1], true
}

func (list[T]) print(_ string, numbers ...int) {
	fmt.Println(numbers[0])
}

func unchanged() int { return 7 }

func factorial(n int) int {
	if n == 0 {
		return 1
	}
	return n * factorial(n-1)
}

func main() {
	l := list[string]{"a", "b"}
	fmt.Println(l.last(""))
	l.print("", 1, 2)
	fmt.Println(unchanged(), factorial(4))
}
`

// TestTheNumberChoosesTheMutant builds a program with three mutants once, and runs it with each number. The edits of a
// mutant are in two functions, or twice in one, and a function may call itself.
func TestTheNumberChoosesTheMutant(t *testing.T) {
	positions := token.NewFileSet()
	tree, err := parser.ParseFile(positions, "main.go", source, 0)
	require.NoError(t, err)
	edit := func(old, text string) schemata.Edit {
		require.Equal(t, 1, strings.Count(source, old))
		from := strings.Index(source, old)
		return schemata.Edit{From: from, To: from + len(old), Text: text}
	}
	copies := map[string][]schemata.Copy{
		"last":      {{Number: 1, Edits: []schemata.Edit{edit(", true", ", false"), edit("len(l)-1", "0")}}},
		"print":     {{Number: 1, Edits: []schemata.Edit{edit("numbers[0]", "numbers[1]")}}, {Number: 2, Edits: []schemata.Edit{edit("fmt.Println(numbers[0])", "")}}},
		"factorial": {{Number: 3, Edits: []schemata.Edit{edit("n * factorial", "n + factorial")}}},
	}
	var functions []schemata.Function
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name != "main" {
			functions = append(functions, schemata.Function{Decl: f, Copies: copies[f.Name.Name]})
		}
	}
	text, places := schemata.Text(source, positions, functions)

	folder := t.TempDir()
	for name, content := range map[string]string{"main.go": text, "chosen.go": schemata.Chosen("main"), "go.mod": "module example\n\ngo 1.26\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "program")
	build.Dir, build.Env = folder, append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, text)
	for number, want := range []string{"b true\n1\n7 24\n", "a false\n2\n7 24\n", "b true\n7 24\n", "b true\n1\n7 11\n"} {
		program := exec.CommandContext(t.Context(), filepath.Join(folder, "program"))
		program.Env = append(os.Environ(), schemata.Variable+"="+string(rune('0'+number)))
		out, err := program.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, want, string(out), "mutant %d", number)
	}

	numbers, lines, line := map[string]int{}, strings.Split(text, "\n"), 0
	for _, p := range places {
		for ; line < p.Last; line++ {
			numbers[strings.TrimSpace(lines[line])] = p.Number
		}
	}
	for line, want := range map[string]int{
		"func unchanged() int {": 0, "return l[0], false": 1, "fmt.Println(numbers[1])": 1, "return n + factorial(n-1)": 3,
	} {
		number, found := numbers[line]
		require.True(t, found, "%s\n%s", line, text)
		require.Equal(t, want, number, line)
	}
}
