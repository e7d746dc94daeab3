package redislimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// TestPoliciesWithoutNumbers: the error of New says that a store cannot keep a policy without numbers.
func TestPoliciesWithoutNumbers(t *testing.T) {
	for _, policy := range []engine.Policy{engine.Unlimited(), engine.Blocked()} {
		err := redislimit.Check("shared", policy)
		require.ErrorContains(t, err, "it has no numbers of its own: want a token bucket or a window")
	}
	require.NoError(t, redislimit.Check("shared", engine.TokenBuckets(time.Hour)), "its quotas have them")
}
