package rpclimit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/rpclimit"
)

// TestALimitInFlightIsRefused: what a call takes is not given back when the call is over.
func TestALimitInFlightIsRefused(t *testing.T) {
	limiter, err := engine.New(engine.Concurrency(1, time.Hour), engine.MaxKeys(10))
	require.NoError(t, err)
	defer limiter.Close()
	_, err = rpclimit.New([]rpclimit.Limit{{Name: "a", Limiter: limiter}})
	require.EqualError(t, err, `rpclimit: limit 1 of 1, "a": what a call takes from an engine.Concurrency would not be given back: want a rate`)
}
