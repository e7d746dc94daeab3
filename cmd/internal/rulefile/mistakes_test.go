package rulefile

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// mistakes returns files with mistakes, and the errors of each file. In testdata/mistakes.txt, a line of = is between
// two files, and a line of - is between a file and its errors.
func mistakes(t testing.TB) (files, errors []string) {
	text, err := os.ReadFile("testdata/mistakes.txt")
	require.NoError(t, err)
	for _, c := range strings.Split(string(text), "=====\n") {
		file, errs, ok := strings.Cut(c, "-----\n")
		require.True(t, ok, c)
		files, errors = append(files, file), append(errors, strings.TrimSuffix(errs, "\n"))
	}
	return files, errors
}

func TestEveryKindOfMistake(t *testing.T) {
	files, want := mistakes(t)
	assert.GreaterOrEqual(t, len(files), 130)
	for i, file := range files {
		f, err := Parse("weir.yaml", []byte(file))
		require.Error(t, err, file)
		assert.Nil(t, f)
		assert.Equal(t, want[i], err.Error(), file)
	}
}

// TestThePlaceIsThatOfTheWord: if an error quotes a text, its line and column are the place of this text.
func TestThePlaceIsThatOfTheWord(t *testing.T) {
	quoted := regexp.MustCompile(`^(?:unknown \w+|trusted_proxies:|path:|host:|name:|key) "([^"\\]+)"`)
	checked := 0
	files, _ := mistakes(t)
	for _, file := range files {
		_, err := Parse("weir.yaml", []byte(file))
		for _, e := range err.(yamlfile.Errors) {
			word := quoted.FindStringSubmatch(e.Message)
			if word == nil {
				continue
			}
			line := strings.Split(file, "\n")[e.Line-1]
			assert.Regexp(t, `^["'\[]?`+regexp.QuoteMeta(word[1]), line[e.Column-1:], "%v in\n%s", e, file)
			checked++
		}
	}
	assert.Greater(t, checked, 30)
}

func TestAFileThatIsTooLong(t *testing.T) {
	_, err := Parse("weir.yaml", append([]byte("rules: [{name: a, rate: 1/s}]\n#"), make([]byte, MaxBytes)...))
	require.EqualError(t, err, "weir.yaml: the file is longer than 1048576 bytes, the maximum")
}

func TestTooManyRules(t *testing.T) {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range MaxRules + 1 {
		fmt.Fprintf(&b, "- {name: r%d, rate: 1/s}\n", i)
	}
	_, err := Parse("weir.yaml", []byte(b.String()))
	require.EqualError(t, err, "weir.yaml:2:1: 65 rules: want at most 64, because a request may match all of them")
	_, err = Parse("weir.yaml", []byte(strings.TrimSuffix(b.String(), "- {name: r64, rate: 1/s}\n")))
	require.NoError(t, err)
}

// TestAliasesThatMultiply: a short file whose aliases expand to a billion values is refused quickly.
func TestAliasesThatMultiply(t *testing.T) {
	var b strings.Builder
	b.WriteString("x-p: &p [" + strings.Repeat("/a,", 20_000) + "/a]\nrules:\n")
	for i := range 60 {
		fmt.Fprintf(&b, "- {name: r%d, rate: 1/s, match: {path: *p}}\n", i)
	}
	_, err := Parse("weir.yaml", []byte(b.String()))
	require.ErrorContains(t, err,
		"the file has more than 200000 values, each counted as often as an alias names it")

	_, err = Parse("weir.yaml", []byte("x-a: &a {<<: *b}\nx-b: &b {<<: *a}\nrules: [{<<: *a}]\n"))
	require.Error(t, err, "an alias before its anchor")
	_, err = Parse("weir.yaml", []byte("rules:\n- &a {<<: *a, name: a, rate: 1/s}\n"))
	require.NoError(t, err, "a mapping that merges itself adds nothing")
}

func TestAFileOfMistakesEnds(t *testing.T) {
	_, err := Parse("weir.yaml", []byte(strings.Repeat("a: 1\n", 1000)))
	assert.Len(t, err, yamlfile.MaxErrors)
}

func TestErrorsAreKnownOneByOne(t *testing.T) {
	_, err := Parse("weir.yaml", []byte("rules: [{name: a, rat: 1/s}]\nlissen: 1\n"))
	var first *yamlfile.Error
	require.ErrorAs(t, err, &first)
	assert.Equal(t, yamlfile.Error{
		File: "weir.yaml", Line: 1, Column: 19, Message: `unknown key "rat": did you mean "rate"?`,
	}, *first)
}

// lineBreaks replaces each line break of YAML by a newline.
var lineBreaks = strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func FuzzParse(f *testing.F) {
	files, _ := mistakes(f)
	for _, file := range append(files, full) {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("weir.yaml", text)
		if err != nil {
			for _, e := range err.(yamlfile.Errors) {
				lines := 1 + strings.Count(lineBreaks.Replace(string(text)), "\n")
				if e.Line < 0 || e.Line > lines+1 || e.Message == "" {
					t.Fatalf("%+v in a file of %d lines", e, lines)
				}
			}
			return
		}
		if len(file.Rules) == 0 || len(file.Listen) == 0 {
			t.Fatal("a good file without rules or listeners")
		}
		for i := range file.Rules {
			if file.Rules[i].MaxKeys > 1000 {
				file.Rules[i].MaxKeys = 1000
			}
			limiter, err := file.Rules[i].NewLimiter()
			if err != nil {
				t.Fatalf("a good file with a bad rule: %v", err)
			}
			limiter.Close()
		}
		if changes := Diff(file, file); !changes.Empty() {
			t.Fatalf("a file differs from itself: %v", changes.Lines())
		}
		if err := file.Describe(&strings.Builder{}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNoPasswordInTheMistakeOfAURL: an error about a URL has no password, whatever is wrong with the scheme.
func TestNoPasswordInTheMistakeOfAURL(t *testing.T) {
	for _, u := range []string{"redis//user:hunter2@h", "redis:/user:hunter2@h", "redis:user:hunter2@h", "user:hunter2@h",
		"//user:hunter2@h", "http//user:hunter2@h"} {
		for _, text := range []string{"store: '" + u + "'\n", "upstream: '" + u + "'\n"} {
			_, err := Parse("weir.yaml", []byte(text+"rules: [{name: a, rate: 1/s}]"))
			if assert.Error(t, err, text) {
				assert.NotContains(t, err.Error(), "hunter2")
			}
		}
	}
}
