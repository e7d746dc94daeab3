package envoy

import (
	"fmt"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/engine"
)

// TestAFloodOfDescriptors: the counter of an account is over its limit. An attacker makes up descriptors to drive it
// out of a small table. Under Evict, made-up counters with fewer hits replace each other. Under Refuse, the account's
// counter always stays.
func TestAFloodOfDescriptors(t *testing.T) {
	const file = `
domain: d
descriptors:
  - {key: account, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: path, rate_limit: {unit: hour, requests_per_unit: 1000}}
`
	for _, test := range []struct {
		overflow engine.OverflowPolicy
		hits     int // hits of each descriptor that the attacker makes up
		keeps    bool
	}{
		{engine.Evict, 1, true}, {engine.Evict, 5, true}, {engine.Evict, 50, false},
		{engine.Refuse, 1, true}, {engine.Refuse, 50, true},
	} {
		name := fmt.Sprintf("%s, %d hits", test.overflow, test.hits)
		s, _ := newService(t, file, Options{MaxKeys: 100, Overflow: test.overflow})
		assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, ask1(t, s, "d: account=victim +6").GetOverallCode())
		kept, refused := true, 0
		for i := range 5000 {
			if ask1(t, s, fmt.Sprintf("d: path=%d +%d", i, test.hits)).GetOverallCode() != rlsv3.RateLimitResponse_OK {
				refused++
			}
			if i%50 == 0 && ask1(t, s, "d: account=victim +0").GetOverallCode() == rlsv3.RateLimitResponse_OK {
				kept = false
				break
			}
		}
		assert.Equal(t, test.keeps, kept, name)
		table := s.Tables()[1]
		assert.Equal(t, "fixed window of 1h0m0s", table.Name)
		assert.Equal(t, test.overflow == engine.Evict, table.Evictions > 0, name)
		assert.EqualValues(t, refused, table.NoRoom, name)
		assert.Equal(t, test.overflow == engine.Refuse, refused > 0, name)
	}
}
