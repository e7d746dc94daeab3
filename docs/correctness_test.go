package docs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheTableOfInvariantsIsTrue compares the table of correctness.md with the tests' comments "TestName (I1, I7):
// ...", which name the invariants that a test checks.
func TestTheTableOfInvariantsIsTrue(t *testing.T) {
	text, err := os.ReadFile("correctness.md")
	require.NoError(t, err)
	invariants := regexp.MustCompile(`(?m)^\| (I\d) \| `).FindAllStringSubmatch(string(text), -1)
	require.Len(t, invariants, 9)

	var table strings.Builder
	shown := map[string]bool{}
	for _, c := range claims(t) {
		table.WriteString("| `" + c.folder + "` | `" + c.test + "` |")
		for _, i := range invariants {
			mark := " "
			if slices.Contains(c.invariants, i[1]) {
				mark, shown[i[1]] = " • ", true
			}
			table.WriteString(mark + "|")
		}
		table.WriteString("\n")
	}
	found := strings.Join(regexp.MustCompile("(?m)^\\| `[a-z/]+` \\| `(?:Test|Fuzz)\\w+` \\|.*\n").FindAllString(string(text), -1), "")
	assert.Equal(t, table.String(), found, "the comments of the tests (expected), and the table of correctness.md (actual)")
	assert.Len(t, shown, 9, "every invariant has a test")
}

type claim struct {
	folder, test string
	invariants   []string
}

func claims(t *testing.T) []claim {
	t.Helper()
	comment := regexp.MustCompile(`(?m)^// ((?:Test|Fuzz)\w+) \((I\d(?:, I\d)*)\)[^\n]*\n(?://.*\n)*func (\w+)\(`)
	var all []claim
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel("..", filepath.Dir(path))
		for _, m := range comment.FindAllStringSubmatch(string(source), -1) {
			assert.Equal(t, m[1], m[3], "%s: a comment and the test under it", path)
			all = append(all, claim{filepath.ToSlash(folder), m[1], strings.Split(m[2], ", ")})
		}
		return err
	}))
	slices.SortFunc(all, func(a, b claim) int { return strings.Compare(a.folder+" "+a.test, b.folder+" "+b.test) })
	return all
}

// TestTheTableOfVerbsIsTrue checks tables of correctness.md. They say which test covers which kind of call (verb).
// Capital letters stand for tests of the table's invariant, no cell is blank, and cells without a test are explained
// and counted.
func TestTheTableOfVerbsIsTrue(t *testing.T) {
	page, err := os.ReadFile("correctness.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "## Which verb, under what\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	about := map[string][]string{} // the invariants of each letter
	for _, m := range regexp.MustCompile("(?m)^\\| ([A-Z]) \\| `([a-z/]+)` \\| `(\\w+)` \\|$").FindAllStringSubmatch(text, -1) {
		all := claims(t)
		i := slices.IndexFunc(all, func(c claim) bool { return c.folder == m[2] && c.test == m[3] })
		if assert.GreaterOrEqual(t, i, 0, "no test of %s is called %s, or it names no invariant", m[2], m[3]) {
			about[m[1]] = all[i].invariants
		}
	}
	reasons := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z]) \| (.*) \|$`).FindAllStringSubmatch(text, -1) {
		reasons[m[1]] = true
		for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(m[2], -1) {
			assert.True(t, hasTest(t, name[1]), "no test is called %s", name[1])
		}
	}
	invariant, verbs, cells, none := "", map[string]int{}, 0, 0
	for line := range strings.Lines(text) {
		cell := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch name := strings.TrimSpace(cell[0]); {
		case strings.HasPrefix(name, "**"):
			invariant, _, _ = strings.Cut(strings.TrimPrefix(name, "**"), "**")
		case len(cell) > 3 && !strings.HasPrefix(name, "-"):
			verbs[name]++
			for _, c := range cell[1:] {
				cells++
				letters := strings.Fields(c)
				assert.NotEmpty(t, letters, "%s, %s: a blank cell", invariant, name)
				for _, letter := range letters {
					if reasons[letter] {
						none++
						assert.Len(t, letters, 1, "%s, %s: a test and a reason for none", invariant, name)
					} else {
						assert.Contains(t, about[letter], invariant, "%s of %s, %s", letter, invariant, name)
					}
				}
			}
		}
	}
	require.NotEmpty(t, verbs)
	for verb, n := range verbs {
		assert.Equal(t, 2*5, n, "%s is in both tables of each invariant", verb)
	}
	sentence := fmt.Sprintf("why a cell has no test: %d of %d cells.", none, cells)
	assert.Contains(t, strings.Join(strings.Fields(text), " "), sentence)
}

func hasTest(t *testing.T, name string) (found bool) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || found || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		found = strings.Contains(string(source), "\nfunc "+name+"(t *testing.T)")
		return err
	}))
	return found
}

// TestTheNumbersOfMutantsAreTrue compares the numbers in correctness.md with the mutants of the table, the lease and
// the spread bucket.
func TestTheNumbersOfMutantsAreTrue(t *testing.T) {
	count := func(file string) (all int, byRule map[string]int) {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		byRule = map[string]int{}
		for _, m := range regexp.MustCompile(`(?m)^\t\{"([RLS]\d+)", "`).FindAllStringSubmatch(string(source), -1) {
			all, byRule[m[1]] = all+1, byRule[m[1]]+1
		}
		return all, byRule
	}
	page, err := os.ReadFile("correctness.md")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(page)), " ")
	besideScenarios, others := count("../shard/mutants_test.go")
	ofTheTable, rules := count("../fuzz/explore/mutants_test.go")
	maps.Copy(rules, others)
	assert.Len(t, rules, 18+9, "R1 to R18 and R21 to R29")
	sentence := fmt.Sprintf("are edits that break it, %d in all.", ofTheTable+besideScenarios)
	assert.True(t, strings.Contains(text, sentence), "correctness.md should say %q", sentence)
	ofTheLease, rules := count("../redislimit/internal/lease/explore_mutants_test.go")
	sentence = fmt.Sprintf("%d edits of the lease, %d for L1, %d for L2, %d for L3, %d for L4, %d for L5, %d for L6, %d for L7, each",
		ofTheLease, rules["L1"], rules["L2"], rules["L3"], rules["L4"], rules["L5"], rules["L6"], rules["L7"])
	assert.True(t, strings.Contains(text, sentence), "correctness.md should say %q", sentence)
	ofTheSpread, rules := count("../internal/spread/explore_mutants_test.go")
	sentence = fmt.Sprintf("%d edits, %d for S1, %d for S2, %d for S3, %d for S4, %d for S5, %d for S6, %d for S7, %d for S8, %d for S9, %d for S10.",
		ofTheSpread, rules["S1"], rules["S2"], rules["S3"], rules["S4"], rules["S5"], rules["S6"], rules["S7"], rules["S8"], rules["S9"], rules["S10"])
	assert.True(t, strings.Contains(text, sentence), "correctness.md should say %q", sentence)
}
