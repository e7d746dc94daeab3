package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/internal/freeport"
)

// TestWhatIsOwedOutlivesTheReplica: a replica restarts while the store is lost. It gets no second share. When the store
// returns, it is charged for the tokens that the first process admitted.
func TestWhatIsOwedOutlivesTheReplica(t *testing.T) {
	port := freeport.Number(t)
	root := write(t, map[string]string{"a.yaml": strings.Replace(file, "requests_per_unit: 3", "requests_per_unit: 10", 1)})
	folder := t.TempDir()
	begin := func() *running {
		return start(t, nil, "--runtime-root="+root, fmt.Sprintf("--redis-url=127.0.0.1:%d", port), "--redis-on-loss=share", "--replicas=2",
			"--redis-state="+folder, "--drain=100ms")
	}
	passed := func(r *running) (n int) {
		for range 20 {
			response, err := r.rls.ShouldRateLimit(t.Context(), request("d", "day", "x", 1))
			require.NoError(t, err)
			if response.GetOverallCode() == rlsv3.RateLimitResponse_OK {
				n++
			}
		}
		return n
	}
	r := begin()
	assert.Equal(t, 5, passed(r))
	require.NoError(t, r.end())
	r = begin()
	assert.Zero(t, passed(r), "the share was spent")
	runRedis(t, port, "--port", fmt.Sprint(port), "--save", "")
	look := request("d", "day", "x", 0)
	look.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	until(t, "the store is charged", func() bool {
		response, err := r.rls.ShouldRateLimit(t.Context(), look)
		return err == nil && response.GetStatuses()[0].GetLimitRemaining() == 5
	})
	require.NoError(t, r.end())
	files, err := filepath.Glob(folder + "/envoy-*")
	require.NoError(t, err)
	assert.Empty(t, files, "nothing is owed")
}

// TestOtherSettingsPayWhatIsOwed: after a restart, a replica charges what the previous process owes. This holds even
// with another policy for a lost store, or if the default prefix is set explicitly.
func TestOtherSettingsPayWhatIsOwed(t *testing.T) {
	for name, other := range map[string][]string{
		"closed": {"--redis-on-loss=closed"}, "open": {"--redis-on-loss=open"},
		"prefix": {"--redis-on-loss=share", "--replicas=2", "--cache-key-prefix=envoy"},
	} {
		t.Run(name, func(t *testing.T) {
			port := freeport.Number(t)
			args := []string{
				"--runtime-root=" + write(t, map[string]string{"a.yaml": strings.Replace(file, "requests_per_unit: 3", "requests_per_unit: 10", 1)}),
				fmt.Sprintf("--redis-url=127.0.0.1:%d", port), "--redis-state=" + t.TempDir(), "--redis-timeout=10s", "--drain=100ms",
			}
			r := start(t, nil, append(args, "--redis-on-loss=share", "--replicas=2")...)
			assert.Equal(t, 4, r.left("day", "x"))
			require.NoError(t, r.end())
			runRedis(t, port, "--port", fmt.Sprint(port), "--save", "")
			r = start(t, nil, append(args, other...)...)
			look := request("d", "day", "x", 0)
			look.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
			until(t, "the store is charged", func() bool {
				response, err := r.rls.ShouldRateLimit(t.Context(), look)
				return err == nil && response.GetStatuses()[0].GetLimitRemaining() == 9
			})
		})
	}
}
