package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheTableOfInvariantsIsTrue compares the table of correctness.md with what the tests of this repository say of
// themselves: a comment "TestName (I1, I7): ..." names the invariants that the test is about.
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

// A claim is what a test says of itself.
type claim struct {
	folder, test string
	invariants   []string
}

// claims returns those of all tests, by folder and name.
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

// TestTheNumbersOfMutantsAreTrue counts the mutants of the table and of the lease in their sources.
func TestTheNumbersOfMutantsAreTrue(t *testing.T) {
	count := func(file string) (all int, byRule map[string]int) {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		byRule = map[string]int{}
		for _, m := range regexp.MustCompile(`(?m)^\t\{"([RL]\d+)", "`).FindAllStringSubmatch(string(source), -1) {
			all, byRule[m[1]] = all+1, byRule[m[1]]+1
		}
		return all, byRule
	}
	page, err := os.ReadFile("correctness.md")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(page)), " ")
	besideScenarios, _ := count("../shard/mutants_test.go")
	ofTheTable, rules := count("../fuzz/explore/mutants_test.go")
	assert.Len(t, rules, 20)
	sentence := fmt.Sprintf("are edits that break it, %d in all.", ofTheTable+besideScenarios)
	assert.True(t, strings.Contains(text, sentence), "correctness.md should say %q", sentence)
	ofTheLease, rules := count("../redislimit/internal/lease/explore_mutants_test.go")
	sentence = fmt.Sprintf("%d edits of the lease, %d for L1, %d for L2, %d for L3, %d for L4, %d for L5, each",
		ofTheLease, rules["L1"], rules["L2"], rules["L3"], rules["L4"], rules["L5"])
	assert.True(t, strings.Contains(text, sentence), "correctness.md should say %q", sentence)
}
