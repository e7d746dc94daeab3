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

// TestStatesAreShown: the summary has the name of a rule's file.
func TestStatesAreShown(t *testing.T) {
	f := parsed(t, "state: "+filepath.ToSlash(t.TempDir())+"\nrules: [{name: api, rate: 1/s}, {name: flights, concurrency: 5}]")
	require.NotEmpty(t, f.Rules[0].State)
	require.NotEmpty(t, f.Rules[1].State)
	var out strings.Builder
	require.NoError(t, f.Describe(&out))
	assert.Contains(t, out.String(), "for 1,000,000 keys, then evict\n  state   "+f.Rules[0].State+"\n")
	assert.Equal(t, 2, strings.Count(out.String(), "\n  state "))
}

// TestStateNames: if two names differ only in the layout, they mean the same table. Files that belong to no rule are
// found, whichever program has made them.
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

// TestStatesOfCalendars: another period or zone of a calendar limit means another file, but another number does not.
func TestStatesOfCalendars(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	rule := func(rate string) string {
		return parsed(t, "state: "+dir+"\nrules: [{name: api, algorithm: fixed-window, "+rate+"}]").Rules[0].State
	}
	seen := map[string]bool{}
	for _, rate := range []string{
		"rate: 5/24h, aligned: true", "rate: 5/day", "rate: 5/week", "rate: 5/day, zone: Europe/Berlin", "rate: 5/day, zone: Asia/Tokyo",
	} {
		assert.False(t, seen[rule(rate)], rate)
		seen[rule(rate)] = true
	}
	assert.True(t, seen[rule("rate: 70/day")])
}

// TestDebtNames: a rule in a store has debt files. Their names depend on the key, the tiers and the store, but contain
// no password.
func TestDebtNames(t *testing.T) {
	dir := t.TempDir()
	rule := func(store, more string) *Rule {
		f := parsed(t, "state: "+filepath.ToSlash(dir)+"\nstore: {url: 'redis://"+store+"'}\nrules: [{name: api"+more+"}]")
		assert.Empty(t, f.Rules[0].State)
		return &f.Rules[0]
	}
	one := rule("a:1", ", rate: 1/s")
	assert.Regexp(t, "^"+dir+"/api-[0-9a-f]{16}$", one.Debts)
	assert.Equal(t, one.Debts, rule("a:1", ", rate: 2/s, burst: 7, max_keys: 9").Debts)
	assert.Equal(t, rule("user:one@a:1", ", rate: 2/s").Debts, rule("user:two@a:1", ", rate: 2/s").Debts)
	for _, other := range []*Rule{
		rule("b:1", ", rate: 1/s"), rule("a:1", ", rate: 1/s, key: global"), rule("a:1", ", rate: 1/s, algorithm: sliding-window"),
		rule("a:1", ", rate: 1/s, tiers: {header: X, values: {a: {rate: 1/s}}}"),
	} {
		assert.NotEqual(t, one.Debts, other.Debts)
	}
	assert.Empty(t, rule("a:1", ", concurrency: 5").Debts, "places are not owed")
	assert.Empty(t, parsed(t, "store: {url: 'redis://a:1'}\nrules: [{name: api, rate: 1/s}]").Rules[0].Debts)

	f := parsed(t, "state: "+filepath.ToSlash(dir)+"\nstore: {url: 'redis://a:1'}\nrules: [{name: api, rate: 1/s}]")
	var out strings.Builder
	require.NoError(t, f.Describe(&out))
	assert.Contains(t, out.String(), "\n  state   debts to the store: "+one.Debts+".*.debts\n")
	for _, name := range []string{one.Debts + ".A.debts", one.Debts + "0.A.debts", filepath.Join(dir, "x.debts")} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	assert.Equal(t, []string{one.Debts + "0.A.debts", filepath.Join(dir, "x.debts")}, f.UnusedStates())
}

// TestFormerStates: the list has exactly the files of earlier rules with the same name, in all layouts.
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
