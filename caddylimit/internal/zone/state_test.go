package zone

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

const aDay = 24 * time.Hour

// inFile returns a spec with a file in the test's folder. Another process with the same limit has the same spec.
func inFile(t *testing.T, policy engine.Policy) Spec {
	if runtime.GOOS != "linux" {
		t.Skip("shared tables are for Linux")
	}
	return Spec{Policy: policy, MaxKeys: 100}.InFolder(t.TempDir(), "a limit/of all", "key")
}

// TestAStateIsSharedAndStays: another process, and this process after a restart, count in the same file.
func TestAStateIsSharedAndStays(t *testing.T) {
	id, spec := newID(), inFile(t, engine.TokenBucket(engine.Per(1, aDay), 5))
	assert.True(t, strings.HasPrefix(filepath.Base(spec.State), "a_limit_of_all-"), spec.State)
	use, err := newUse(id, spec, alone)
	require.NoError(t, err)
	require.NoError(t, use.start())
	other, err := spec.limiter()
	require.NoError(t, err)
	defer other.Close()
	assert.Equal(t, 2, admitted(t, use, 2))
	assert.True(t, other.Allow("key"))
	end(t, use)
	again, err := newUse(id, spec, alone)
	require.NoError(t, err)
	require.NoError(t, again.start())
	defer end(t, again)
	assert.EqualValues(t, 4, other.Peek(other.Key("key"), 1).Remaining)
	assert.Equal(t, 3, admitted(t, again, 9), "2 of 5 are taken by the first use")
}

// TestAStateChangesWithTheStart: other numbers apply to other processes only when the configuration starts.
func TestAStateChangesWithTheStart(t *testing.T) {
	id, spec := newID(), inFile(t, engine.TokenBucket(engine.Per(1, aDay), 5))
	other, err := spec.limiter()
	require.NoError(t, err)
	defer other.Close()
	next := spec
	next.Policy = engine.TokenBucket(engine.Per(1, aDay), 8)
	use, err := newUse(id, next, alone)
	require.NoError(t, err)
	assert.Equal(t, spec.Policy, other.Policy(0))
	require.NoError(t, use.start())
	assert.Equal(t, next.Policy, other.Policy(0))
	end(t, use)
}

// TestAStateForEachLimit: the name of the file depends on the settings that cannot change in a file.
func TestAStateForEachLimit(t *testing.T) {
	policy := engine.FixedWindow(5, time.Hour)
	stored := Spec{Policy: policy, Store: "redis://a:1"}.InFolder("/f", "a", "k")
	assert.Contains(t, stored.String(), ", what it is owed in "+stored.Debts, "limits that differ in this alone must not look alike")
	own := Spec{Policy: policy}.InFolder("/f", "a", "k").State
	assert.Equal(t, own, Spec{Policy: engine.FixedWindow(9, time.Minute)}.InFolder("/f", "a", "k").State, "numbers change")
	tiers := Spec{Policy: policy}
	require.NoError(t, tiers.SetTiers([]engine.Policy{policy}))
	seen := map[string]bool{own: true}
	for _, s := range []Spec{
		Spec{Policy: policy}.InFolder("/f", "b", "k"), Spec{Policy: policy}.InFolder("/f", "a", "other"),
		Spec{Policy: policy}.InFolder("/f", "a", "k", ""), Spec{Policy: policy.Aligned()}.InFolder("/f", "a", "k"),
		Spec{Policy: engine.TokenBucket(engine.PerSecond(1), 5)}.InFolder("/f", "a", "k"), tiers.InFolder("/f", "a", "k"),
		Spec{Policy: engine.CalendarWindow(5, engine.Day, nil)}.InFolder("/f", "a", "k"),
		Spec{Policy: engine.CalendarWindow(5, engine.Week, nil)}.InFolder("/f", "a", "k"),
		Spec{Policy: engine.CalendarWindow(5, engine.Day, time.FixedZone("a", 3600))}.InFolder("/f", "a", "k"),
		Spec{Policy: policy, MaxKeys: 5}.InFolder("/f", "a", "k"), Spec{Policy: policy, Overflow: engine.Admit}.InFolder("/f", "a", "k"),
	} {
		assert.False(t, seen[s.State], s.State)
		seen[s.State] = true
	}
}

// TestAStateThatCannotBe: the error about a file that cannot be opened contains the reason.
func TestAStateThatCannotBe(t *testing.T) {
	_, err := newUse(newID(), inFile(t, engine.SlidingLog(5, time.Hour)), alone)
	assert.ErrorContains(t, err, "logs cannot be shared")
	spec := inFile(t, engine.TokenBucket(engine.PerSecond(1), 5))
	require.NoError(t, os.Chmod(filepath.Dir(spec.State), 0o777))
	_, err = newUse(newID(), spec, alone)
	assert.ErrorContains(t, err, "everybody can remove files")
}
