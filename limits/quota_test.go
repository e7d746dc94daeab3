package limits_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
)

// TestQuotaElse: QuotaElse applies if the quota of a request is not accepted.
func TestQuotaElse(t *testing.T) {
	own := engine.TokenBucket(engine.Per(1, time.Hour), 2)
	limiter, err := engine.New(own, engine.MaxKeys(10), engine.MaxQuota(100))
	require.NoError(t, err)
	defer limiter.Close()
	bad := engine.FixedWindow(5, time.Hour)
	for _, c := range []struct {
		name     string
		of       engine.Policy // the quota that a request brings
		err      error         // the error that Quota returns instead
		other    engine.Policy
		admitted int
		policy   engine.Policy
		errors   int
	}{
		{"good", engine.TokenBucket(engine.PerSecond(1), 4), nil, own, 4, engine.TokenBucket(engine.PerSecond(1), 4), 0},
		{"bad", bad, nil, own, 2, own, 1},
		{"none", engine.Policy{}, nil, engine.Blocked(), 0, engine.Blocked(), 1},
		{"both bad", bad, nil, bad, 0, engine.Blocked(), 2},
		{"an error", bad, errors.New("unreadable"), own, 2, own, 1},
		{"an error alone", own, errors.New("unreadable"), engine.Policy{}, 0, engine.Blocked(), 1},
		{"without", bad, nil, engine.Policy{}, 0, engine.Blocked(), 1},
	} {
		var failures []error
		s, err := limits.New([]limits.Limit[string]{{
			Name: "a", Limiter: limiter, Quota: func(string) (engine.Policy, error) { return c.of, c.err }, QuotaElse: c.other,
			Key: func(h limits.Hasher, r string) (engine.Key, bool) { return h.Key(r), true },
		}}, limits.Options[string]{OnError: func(_ string, err error) { failures = append(failures, err) }})
		require.NoError(t, err)
		admitted := 0
		for range 6 {
			failures = nil
			res := s.Decide(t.Context(), c.name)
			if res.Allowed() {
				admitted++
			}
			assert.Equal(t, c.policy, res.Check(0).Policy(), c.name)
			assert.Len(t, failures, c.errors, c.name)
			if c.errors == 2 || c.other == (engine.Policy{}) {
				assert.Equal(t, limits.Unavailable, res.Verdict(), c.name)
			}
		}
		assert.Equal(t, c.admitted, admitted, c.name)
	}
	_, err = limits.New([]limits.Limit[string]{{Name: "a", Limiter: limiter, Key: limits.Everyone[string], QuotaElse: own}}, limits.Options[string]{})
	require.ErrorContains(t, err, "QuotaElse is set but Quota is not")
}
