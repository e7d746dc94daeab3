package rulefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sharedfile"
)

// TestStatesAreShown: the description names the file of each rule that has one.
func TestStatesAreShown(t *testing.T) {
	f := parsed(t, "state: "+filepath.ToSlash(t.TempDir())+"\nrules: [{name: api, rate: 1/s}, {name: flights, concurrency: 5}]")
	require.NotEmpty(t, f.Rules[0].State)
	require.NotEmpty(t, f.Rules[1].State)
	var out strings.Builder
	require.NoError(t, f.Describe(&out))
	assert.Contains(t, out.String(), "for 1,000,000 keys, then evict\n  state   "+f.Rules[0].State+"\n")
	assert.Equal(t, 2, strings.Count(out.String(), "\n  state "))
}

// TestStateNames: the name says the layout. Files of other layouts are those that have the rest of the name, and files
// that no rule has are found, whoever has made them.
func TestStateNames(t *testing.T) {
	dir := t.TempDir()
	f := parsed(t, "state: "+filepath.ToSlash(dir)+"\nrules: [{name: api, rate: 1/s}, {name: other, rate: 1/s}]")
	api := &f.Rules[0]
	stem, ok := strings.CutSuffix(filepath.Base(api.State), fmt.Sprintf(".v%d.weir", sharedfile.LayoutVersion))
	require.True(t, ok, api.State)
	assert.Regexp(t, "^api-[0-9a-f]{16}$", stem)
	assert.Empty(t, f.UnusedStates())
	assert.Empty(t, api.OtherLayouts())

	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{stem + ".v999.weir", stem + ".v9999.weir", stem + "0.v999.weir", "x.weir", ".x.weir", "x.yaml"} {
		require.NoError(t, os.WriteFile(path(name), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(api.State, nil, 0o600))
	require.NoError(t, os.WriteFile(f.Rules[1].State, nil, 0o600))
	assert.Equal(t, []string{path(stem + ".v999.weir"), path(stem + ".v9999.weir")}, api.OtherLayouts())
	assert.ElementsMatch(t, []string{path(stem + ".v999.weir"), path(stem + ".v9999.weir"), path(stem + "0.v999.weir"), path("x.weir")},
		f.UnusedStates())
	assert.Empty(t, parsed(t, "rules: [{name: api, rate: 1/s}]").UnusedStates(), "without a state")
}

// TestFormerStates: files of a rule of the same name that is another, of all versions, and no others.
func TestFormerStates(t *testing.T) {
	dir := t.TempDir()
	rule := func(more string) *Rule {
		return &parsed(t, "state: "+filepath.ToSlash(dir)+"\nrules: [{name: api, rate: 1/s"+more+"}]").Rules[0]
	}
	const tiers = ", tiers: {header: X, values: {a: {rate: 1/s}, b: {rate: 2/s}}}"
	const reordered = ", tiers: {header: X, values: {b: {rate: 2/s}, a: {rate: 1/s}}}"
	now, former := rule(tiers), []string{
		rule(reordered).State, rule("").State, rule(", max_keys: 7").State, filepath.Join(dir, "api-0123456789abcdef.weir"),
	}
	assert.Empty(t, now.FormerStates())
	others := []string{now.State, rule(tiers + ", burst: 9").State, filepath.Join(dir, now.stateStem()+".v999.weir")}
	for _, name := range []string{"api.weir", "api-x-0123456789abcdef.v2.weir", "api-0123456789abcdef-0123456789abcdef.v2.weir",
		"api-0123456789abcdef0.v2.weir", "api-0123456789abcdef.v2.weir~", "ap-0123456789abcdef.v2.weir"} {
		others = append(others, filepath.Join(dir, name))
	}
	for _, path := range append(others, former...) {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	assert.ElementsMatch(t, former, now.FormerStates())
}
