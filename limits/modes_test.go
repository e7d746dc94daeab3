package limits_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testclock"
	"github.com/weir-go/weir/limits"
)

// TestModes: in memory and in a store, NotApplied takes nothing, and InShadow counts but does not refuse.
func TestModes(t *testing.T) {
	c := testclock.New()
	local, memory := inMemory(t, c, "memory", 2)
	remote, store := stored(t, c, &database{}, "store", 3)
	var modes []limits.Mode
	set, err := limits.New([]limits.Limit[int]{memory, store}, limits.Options[int]{Modes: func(r int) func(int) limits.Mode {
		if modes == nil {
			return nil
		}
		return func(limit int) limits.Mode { return modes[limit] }
	}})
	require.NoError(t, err)
	left := func() [2]uint64 {
		return [2]uint64{local.Peek(local.KeyUint64(0), 1).Remaining, remote.left()}
	}
	ask := func(want ...limits.Mode) (outcomes []limits.Outcome, allowed bool) {
		modes = want
		res := set.Decide(t.Context(), 0)
		for i := range res.Len() {
			outcomes = append(outcomes, res.Check(i).Outcome)
		}
		return outcomes, res.Allowed()
	}
	outcomes, allowed := ask(limits.NotApplied, limits.NotApplied)
	assert.Empty(t, outcomes)
	assert.True(t, allowed)
	assert.Equal(t, [2]uint64{2, 3}, left(), "nothing was taken")
	for range 2 {
		_, allowed = ask()
		assert.True(t, allowed)
	}
	_, allowed = ask(limits.AsWritten, limits.AsWritten)
	assert.False(t, allowed)
	outcomes, allowed = ask(limits.InShadow, limits.AsWritten)
	assert.True(t, allowed)
	assert.Equal(t, []limits.Outcome{limits.ShadowRefused, limits.Allowed}, outcomes)
	_, allowed = ask(limits.NotApplied, limits.AsWritten)
	assert.False(t, allowed)
	outcomes, allowed = ask(limits.NotApplied, limits.InShadow)
	assert.True(t, allowed)
	assert.Equal(t, []limits.Outcome{limits.ShadowRefused}, outcomes)
	_, allowed = ask()
	assert.False(t, allowed, "the modes were those of a request")
}
