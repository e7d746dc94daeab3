package fuzz

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/correctness.md says which test shows which invariant. This keeps its table true:
// a test says in its comment which invariants it is about, "TestName (I1, I7): ...", and
// the table names exactly these tests in the rows of these invariants.
func TestTheTableOfInvariantsIsTrue(t *testing.T) {
	document, err := os.ReadFile("../docs/correctness.md")
	require.NoError(t, err)
	said := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (I\d) \|.*$`).FindAllStringSubmatch(string(document), -1) {
		for _, test := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(row[0], -1) {
			said[row[1]] = append(said[row[1]], test[1])
		}
	}
	found := map[string][]string{}
	for name, invariants := range claims(t) {
		for _, invariant := range invariants {
			found[invariant] = append(found[invariant], name)
		}
	}
	for _, invariant := range strings.Fields("I1 I2 I3 I4 I5 I6 I7 I8 I9") {
		assert.ElementsMatch(t, found[invariant], said[invariant], "%s: what tests say of themselves, and what docs/correctness.md says", invariant)
		assert.NotEmpty(t, said[invariant], "%s", invariant)
	}
	assert.Len(t, found, 9)
}

// claims returns, for every test of the repository, the invariants that its comment names.
func claims(t *testing.T) map[string][]string {
	comment := regexp.MustCompile(`(?m)^// ((?:Test|Fuzz)\w+) \((I\d(?:, I\d)*)\)[^\n]*\n(?://.*\n)*func (\w+)\(`)
	tests := map[string][]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range comment.FindAllStringSubmatch(string(source), -1) {
			assert.Equal(t, m[1], m[3], "%s: a comment and the test under it", path)
			tests[m[1]] = strings.Split(m[2], ", ")
		}
		return err
	}))
	return tests
}
