package envoy

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) set(now time.Time) { c.mu.Lock(); defer c.mu.Unlock(); c.now = now }

// start is 20 seconds into a minute.
var start = time.Date(2026, 5, 4, 10, 30, 20, 0, time.UTC)

func newService(t *testing.T, file string, o Options) (*Service, *clock) {
	t.Helper()
	c := &clock{now: start}
	o.Clock = c.read
	if o.MaxKeys == 0 {
		o.MaxKeys = 1000
	}
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	if file != "" {
		require.NoError(t, s.SetConfig(compile(t, file)))
	}
	return s, c
}

func compile(t *testing.T, file string) *config.Config {
	t.Helper()
	document, err := config.Parse("a.yaml", []byte(file))
	require.NoError(t, err)
	c, err := config.Compile([]*config.Document{document}, config.Options{})
	require.NoError(t, err)
	return c
}

// asking parses a request of the form "domain: key=value,key=value +hits | ...". After a descriptor, "+5" means five
// hits, and "-5" gives five hits back. The text "limit=5/minute/2" carries a limit of 5 in two minutes; "/2" is
// optional.
func asking(t *testing.T, text string) *rlsv3.RateLimitRequest {
	t.Helper()
	domain, rest, _ := strings.Cut(text, ":")
	request := &rlsv3.RateLimitRequest{Domain: domain}
	for _, one := range strings.Split(rest, "|") {
		descriptor := &commonv3.RateLimitDescriptor{}
		for _, word := range strings.Fields(one) {
			switch {
			case word[0] == '+' || word[0] == '-':
				hits, err := strconv.ParseUint(word[1:], 10, 64)
				require.NoError(t, err)
				descriptor.HitsAddend, descriptor.IsNegativeHits = wrapperspb.UInt64(hits), word[0] == '-'
			case strings.HasPrefix(word, "limit="):
				requests, unit, _ := strings.Cut(word[len("limit="):], "/")
				unit, multiplier, _ := strings.Cut(unit, "/")
				n, err := strconv.ParseUint(requests, 10, 32)
				require.NoError(t, err)
				descriptor.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
					RequestsPerUnit: uint32(n), Unit: typev3.RateLimitUnit(typev3.RateLimitUnit_value[strings.ToUpper(unit)]),
				}
				if multiplier != "" {
					m, err := strconv.ParseUint(multiplier, 10, 32)
					require.NoError(t, err)
					value, err := proto.Marshal(wrapperspb.UInt32(uint32(m)))
					require.NoError(t, err)
					descriptor.Limit.ProtoReflect().SetUnknown(
						protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), value))
				}
			default:
				for _, entry := range strings.Split(word, ",") {
					key, value, _ := strings.Cut(entry, "=")
					descriptor.Entries = append(descriptor.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
				}
			}
		}
		request.Descriptors = append(request.Descriptors, descriptor)
	}
	return request
}

// The function told returns an answer as text: "OVER: ok 3 40s, over 0 40s". A status without a limit is "none", and an
// unlimited status is "free".
func told(response *rlsv3.RateLimitResponse) string {
	names := map[rlsv3.RateLimitResponse_Code]string{
		rlsv3.RateLimitResponse_OK: "ok", rlsv3.RateLimitResponse_OVER_LIMIT: "over",
	}
	var statuses []string
	for _, s := range response.GetStatuses() {
		switch {
		case s.GetCurrentLimit() != nil:
			statuses = append(statuses, fmt.Sprintf(
				"%s %d %s", names[s.GetCode()], s.GetLimitRemaining(), s.GetDurationUntilReset().AsDuration()))
		case s.GetLimitRemaining() == 0:
			statuses = append(statuses, "none")
		default:
			statuses = append(statuses, "free")
		}
	}
	return strings.ToUpper(names[response.GetOverallCode()]) + ": " + strings.Join(statuses, ", ")
}

const rules = `
domain: d
descriptors:
  - key: five
    rate_limit: {unit: minute, requests_per_unit: 5}
  - key: two
    rate_limit: {unit: second, requests_per_unit: 2}
  - key: hour
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: shadow
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: quota
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: free
    rate_limit: {unlimited: true}
  - key: shut
    rate_limit: {unit: minute, requests_per_unit: 0}
  - key: named
    rate_limit: {unit: minute, requests_per_unit: 1, name: low}
  - key: better
    rate_limit: {unit: minute, requests_per_unit: 9, name: high, replaces: [{name: low}]}
  - key: unbound
    rate_limit: {unlimited: true, name: all, replaces: [{name: low}, {name: high}]}
  - key: five_minutes
    rate_limit: {unit: minute, unit_multiplier: 5, requests_per_unit: 5}
  - key: bucket
    rate_limit: {unit: minute, requests_per_unit: 6, algorithm: token-bucket, burst: 3}
  - key: log
    rate_limit: {period: 10s, requests_per_unit: 2, algorithm: sliding-log}
`

const budgets = `
domain: d
descriptors:
  - key: bucket
    rate_limit: {unit: second, requests_per_unit: 1, algorithm: token-bucket, burst: 10, overdraw: true}
  - key: window
    rate_limit: {unit: minute, requests_per_unit: 10, algorithm: sliding-window, overdraw: true}
  - key: log
    rate_limit: {unit: minute, requests_per_unit: 10, algorithm: sliding-log, overdraw: true}
  - key: fixed
    rate_limit: {unit: minute, requests_per_unit: 10, overdraw: true}
`

// A semantic is a list of steps. A step is a request, "->" and the expected answer, or "+" and a time to wait.
type semantic struct {
	name    string
	options Options
	steps   string
}

var semantics = []semantic{
	{"hits are counted until the window ends", Options{}, `
		d: five=a -> OK: ok 4 40s
		d: five=a -> OK: ok 3 40s
		d: five=a +3 -> OK: ok 0 40s
		d: five=a -> OVER: over 0 40s
		d: five=b -> OK: ok 4 40s
		+39s
		d: five=a -> OVER: over 0 1s
		+999ms
		d: five=a -> OVER: over 0 1s
		+1ms
		d: five=a -> OK: ok 4 1m0s`},
	{"the hit that crosses is refused and counted", Options{}, `
		d: five=a +4 -> OK: ok 1 40s
		d: five=a +2 -> OVER: over 0 40s
		d: five=a +1 -> OVER: over 0 40s`},
	{"all descriptors are charged though one refuses", Options{}, `
		d: two=a +3 | five=a -> OVER: over 0 1s, ok 4 40s
		d: five=a -> OK: ok 3 40s`},
	{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: only those that refuse are charged", Options{StopWhenOver: true}, `
		d: two=a +3 | five=a -> OVER: over 0 1s, ok 5 40s
		d: five=a | two=a +3 -> OVER: ok 5 40s, over 0 1s
		d: five=a | shadow=a +3 -> OK: ok 5 40s, ok 0 40s
		d: five=a -> OK: ok 4 40s
		d: five=a +6 | bucket=a | five=a +2 -> OVER: over 0 40s, ok 3 0s, over 0 40s
		d: five=a -7 | two=a -> OVER: ok 5 40s, over 0 1s`},
	{"a look", Options{}, `
		d: five=a +0 -> OK: ok 5 40s
		d: five=a +5 -> OK: ok 0 40s
		d: five=a +0 -> OK: ok 0 40s
		d: five=a -> OVER: over 0 40s
		d: five=a +0 -> OVER: over 0 40s`},
	{"hits that are given back", Options{}, `
		d: five=a +5 -> OK: ok 0 40s
		d: five=a -2 -> OK: ok 2 40s
		d: five=a -> OK: ok 1 40s
		d: five=a -100 -> OK: ok 5 40s
		d: five=a +8 -> OVER: over 0 40s
		d: five=a -2 -> OVER: over 0 40s
		d: five=a -2 -> OK: ok 1 40s`},
	{"hits given back in the next window are nobody's", Options{}, `
		d: five=a +5 -> OK: ok 0 40s
		+40s
		d: five=a -2 -> OK: ok 5 1m0s`},
	{"more hits than a counter holds", Options{}, `
		d: five=a +18446744073709551615 -> OVER: over 0 40s
		d: five=a +18446744073709551615 -> OVER: over 0 40s
		d: five=a -4294967296 -> OK: ok 5 40s`},
	{"no rule, no domain, no entries", Options{}, `
		d: none=a -> OK: none
		d: five=a,more=b -> OK: none
		e: five=a -> OK: none
		d: -> OK: none`},
	{"several descriptors", Options{}, `
		d: five=a | two=b | none=c -> OK: ok 4 40s, ok 1 1s, none
		d: five=a +5 | two=b -> OVER: over 0 40s, ok 0 1s`},
	{"the same descriptor twice in a request counts twice", Options{}, `
		d: two=a | two=a -> OK: ok 1 1s, ok 0 1s
		d: two=a | two=b -> OVER: over 0 1s, ok 1 1s`},
	{"shadow mode of a rule", Options{}, `
		d: shadow=a -> OK: ok 0 40s
		d: shadow=a -> OK: ok 0 40s
		d: shadow=a +0 -> OK: ok 0 40s`},
	{"SHADOW_MODE", Options{ShadowMode: true}, `
		d: hour=a +3 -> OK: over 0 29m40s`},
	{"quota mode: alone it refuses", Options{}, `
		d: quota=a -> OK: ok 0 40s
		d: quota=a -> OVER: over 0 40s`},
	{"quota mode: only all together refuse", Options{}, `
		d: quota=a +2 | quota=b -> OK: over 0 40s, ok 0 40s
		d: quota=a | quota=b -> OVER: over 0 40s, over 0 40s`},
	{"quota mode: another that is over refuses", Options{}, `
		d: quota=a | two=a +3 -> OVER: ok 0 40s, over 0 1s
		d: quota=a | two=b -> OVER: over 0 40s, ok 1 1s`},
	{"QUOTA_MODE: all rules", Options{QuotaMode: true}, `
		d: five=a +6 | two=b -> OK: over 0 40s, ok 1 1s
		d: five=a | two=b +6 -> OVER: over 0 40s, over 0 1s`},
	{"unlimited", Options{}, `
		d: free=a -> OK: free
		d: free=a +18446744073709551615 -> OK: free`},
	{"a limit of 0", Options{}, `
		d: shut=a -> OVER: over 0 40s
		d: shut=a +0 -> OVER: over 0 40s
		d: shut=b +0 -> OK: ok 0 40s`},
	{"replaces", Options{}, `
		d: named=a -> OK: ok 0 40s
		d: named=a | better=a -> OK: none, ok 8 40s
		d: better=a | named=a -> OK: ok 7 40s, none
		d: named=a -> OVER: over 0 40s`},
	{"an unlimited rule replaces", Options{}, `
		d: named=a +5 | unbound=a | better=a -> OK: none, free, none
		d: named=a -> OK: ok 0 40s`},
	{"a limit of the request", Options{}, `
		d: five=a limit=2/minute -> OK: ok 1 40s
		d: five=a -> OK: ok 3 40s
		d: five=a limit=2/minute -> OVER: over 0 40s
		d: none=a limit=1/hour -> OK: ok 0 29m40s
		d: shadow=a +2 limit=1/hour -> OVER: over 0 29m40s
		d: quota=a +2 limit=1/hour | five=b -> OVER: over 0 29m40s, ok 4 40s
		e: five=a limit=1/minute -> OK: none`},
	{"a limit of the request for several units", Options{}, `
		d: five=a limit=2/minute/5 -> OK: ok 1 4m40s
		+40s
		d: five=a limit=2/minute/5 -> OK: ok 0 4m0s
		d: five=a limit=2/minute -> OK: ok 1 1m0s
		d: five_minutes=a limit=5/minute/5 -> OK: ok 4 4m0s
		d: five_minutes=a -> OK: ok 3 4m0s`},
	{"a window of several units", Options{}, `
		d: five_minutes=a -> OK: ok 4 4m40s
		+4m39s
		d: five_minutes=a -> OK: ok 3 1s
		+1s
		d: five_minutes=a -> OK: ok 4 5m0s`},
	{"a token bucket", Options{}, `
		d: bucket=a +3 -> OK: ok 0 30s
		d: bucket=a -> OVER: over 0 10s
		+10s
		d: bucket=a -> OK: ok 0 30s
		d: bucket=a +0 -> OK: ok 0 30s
		d: bucket=a -2 -> OK: ok 2 10s`},
	{"a sliding log", Options{}, `
		d: log=a -> OK: ok 1 10s
		+4s
		d: log=a -> OK: ok 0 6s
		d: log=a -> OVER: over 0 6s
		+6s
		d: log=a -> OK: ok 0 4s`},
}

var semanticsAllOrNothing = []semantic{
	{"what is refused is not counted", Options{}, `
		d: five=a +4 -> OK: ok 1 40s
		d: five=a +2 -> OVER: over 0 40s
		d: five=a +1 -> OK: ok 0 40s`},
	{"nor is the rest of the request", Options{}, `
		d: two=a +3 | five=a -> OVER: over 0 1s, ok 5 40s
		d: five=a | two=a +3 -> OVER: ok 5 40s, over 0 1s
		d: five=a +6 | two=a +3 | five=a +5 -> OVER: over 0 40s, over 0 1s, ok 5 40s
		d: five=a +0 | two=a +0 -> OK: ok 5 40s, ok 2 1s`},
	{"also where a request would count it in part", Options{StopWhenOver: true}, `
		d: five=a +6 -> OVER: over 0 40s
		d: five=a +5 -> OK: ok 0 40s`},
	{"over algorithms", Options{}, `
		d: bucket=a +3 | log=a +3 -> OVER: ok 3 0s, over 0 0s
		d: log=a +3 | bucket=a +3 -> OVER: over 0 0s, ok 3 0s
		d: log=a +3 | bucket=a +4 -> OVER: over 0 0s, over 0 0s
		d: bucket=a +3 | log=a +2 -> OK: ok 0 30s, ok 0 10s`},
}

// These steps use limits as budgets. A request with 0 hits checks a limit before the call to the upstream. A request
// with more hits charges its cost afterwards.
var semanticsOverdraw = []semantic{
	{"a bucket", Options{}, `
		d: bucket=a +0 -> OK: ok 10 0s
		d: bucket=a +4 -> OK: ok 6 4s
		d: bucket=a +21 -> OVER: over 0 16s
		d: bucket=a +0 -> OVER: over 0 16s
		d: bucket=a +5 -> OVER: over 0 21s
		+20s
		d: bucket=a +0 -> OVER: over 0 1s
		+1s
		d: bucket=a +0 -> OK: ok 1 9s
		d: bucket=a +1 -> OK: ok 0 10s`},
	{"up to ten limits", Options{}, `
		d: bucket=a +4000000000 -> OVER: over 0 1m31s
		d: bucket=a +1 -> OVER: over 0 1m31s`},
	{"a sliding window", Options{}, `
		d: window=a +4 -> OK: ok 6 40s
		d: window=a +9 -> OVER: over 0 40s
		d: window=a +0 -> OVER: over 0 40s`},
	{"a sliding log holds the limit", Options{}, `
		d: log=a +4 -> OK: ok 6 1m0s
		+1s
		d: log=a +9 -> OVER: over 0 59s
		d: log=a +0 -> OVER: over 0 59s`},
	{"a fixed window does so by itself", Options{}, `
		d: fixed=a +10 -> OK: ok 0 40s
		d: fixed=a +0 -> OK: ok 0 40s
		d: fixed=a +5 -> OVER: over 0 40s
		d: fixed=a +0 -> OVER: over 0 40s`},
	{"STOP: what refuses is charged", Options{StopWhenOver: true}, `
		d: bucket=a +15 -> OVER: over 0 6s
		d: bucket=a +0 -> OVER: over 0 6s`},
}

// TestSemantics checks the answers of the service, request by request.
func TestSemantics(t *testing.T) {
	for _, test := range semantics {
		t.Run(test.name, func(t *testing.T) { test.run(t, rules) })
	}
	for _, test := range semanticsOverdraw {
		t.Run("overdraw: "+test.name, func(t *testing.T) { test.run(t, budgets) })
	}
	for _, test := range semanticsAllOrNothing {
		t.Run("all or nothing: "+test.name, func(t *testing.T) { test.run(t, "all_or_nothing: true\n"+rules) })
	}
}

func (test *semantic) run(t *testing.T, rules string) {
	s, c := newService(t, rules, test.options)
	for _, line := range strings.Split(strings.TrimSpace(test.steps), "\n") {
		if line = strings.TrimSpace(line); line[0] == '+' {
			wait, err := time.ParseDuration(line[1:])
			require.NoError(t, err)
			c.set(c.read().Add(wait))
			continue
		}
		asks, want, _ := strings.Cut(line, " -> ")
		response, err := s.ShouldRateLimit(context.Background(), asking(t, asks))
		require.NoError(t, err, line)
		assert.Equal(t, want, told(response), line)
	}
}
