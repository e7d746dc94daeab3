package envoy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/testrace"
	"github.com/weir-go/weir/limits/spec"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/internal/testalloc"
)

func ask1(t *testing.T, s *Service, text string) *rlsv3.RateLimitResponse {
	t.Helper()
	response, err := s.ShouldRateLimit(context.Background(), asking(t, text))
	require.NoError(t, err, text)
	return response
}

// TestErrors: malformed requests are counted and get envoyproxy/ratelimit's error texts.
func TestErrors(t *testing.T) {
	s, _ := newService(t, "", Options{})
	badUnit := asking(t, "d: five=a limit=1/minute")
	badUnit.Descriptors[0].Limit.Unit = typev3.RateLimitUnit_UNKNOWN
	for i, test := range []struct {
		request *rlsv3.RateLimitRequest
		loaded  bool
		code    codes.Code
		text    string
	}{
		{nil, false, codes.Unknown, "rate limit domain must not be empty"},
		{&rlsv3.RateLimitRequest{Domain: "d"}, false, codes.Unknown, "rate limit descriptor list must not be empty"},
		{asking(t, "d: five=a"), false, codes.Unknown, "no rate limit configuration loaded"},
		{badUnit, true, codes.InvalidArgument, "limit of the descriptor: unit 0: want 1 to 7"},
	} {
		if test.loaded {
			require.NoError(t, s.SetConfig(compile(t, rules)))
		}
		response, err := s.ShouldRateLimit(context.Background(), test.request)
		assert.Nil(t, response)
		assert.Equal(t, test.code, status.Code(err))
		assert.Equal(t, test.text, status.Convert(err).Message())
		assert.EqualValues(t, i+1, s.stats.ServiceErrors.Load())
	}
}

// TestOverflowAndReplicas: options that would change the configured limits are refused.
func TestOverflowAndReplicas(t *testing.T) {
	_, err := New(Options{Overflow: engine.Admit})
	assert.EqualError(t, err, "envoy: Overflow of 2: want engine.Evict or engine.Refuse")
	_, err = New(Options{Replicas: 3})
	assert.EqualError(t, err, "envoy: Replicas of 3 without a Store: replicas share nothing without one")
	for _, n := range []int{-1, 100_001} {
		_, err = New(Options{Replicas: n})
		assert.EqualError(t, err, fmt.Sprintf("envoy: Replicas of %d: want 0 to 100000", n))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	two := float32(2)
	for want, o := range map[string]Options{
		"envoy: NearLimitRatio of 2: want 0 to 1": {NearLimitRatio: &two},
		"envoy: MaxStats of -1: want 1 or more":   {MaxStats: -1},
		"envoy: engine: MaxKeys(-1): want":        {MaxKeys: -1},
	} {
		_, err := New(o)
		assert.ErrorContains(t, err, want)
	}
}

// TestEmptyRequestParts: nil descriptors and nil entries count as empty and cause no panic.
func TestEmptyRequestParts(t *testing.T) {
	s, _ := newService(t, rules, Options{DynamicMetadata: true, ResponseHeaders: Headers{"a", "b", "c"}})
	response, err := s.ShouldRateLimit(context.Background(), &rlsv3.RateLimitRequest{
		Domain: "d", Descriptors: []*commonv3.RateLimitDescriptor{nil, {Entries: []*commonv3.RateLimitDescriptor_Entry{nil}}},
	})
	require.NoError(t, err)
	assert.Equal(t, "OK: none, none", told(response))
}

// TestStatistics: each event is counted under envoyproxy/ratelimit's name.
func TestStatistics(t *testing.T) {
	s, _ := newService(t, rules+`
  - key: detailed
    detailed_metric: true
    rate_limit: {unit: minute, requests_per_unit: 10}
`, Options{MaxStats: 40})
	names := func() (n int) {
		s.stats.names.Range(func(any, any) bool { n++; return true })
		return n
	}
	ofRules := names()
	for _, test := range []struct{ asks, name, want string }{
		{"d: five=a +3", "d.five", "total 3 within 3"},
		{"d: five=a +2", "d.five", "total 5 within 5 near 1"},
		{"d: five=a +2", "d.five", "total 7 within 5 near 1 over 2"},
		{"d: five=b +7", "d.five", "total 14 within 5 near 2 over 4"},
		{"d: five=b -7", "d.five", "total 21 within 5 near 2 over 4"},
		{"d: five=b +0", "d.five", "total 21 within 5 near 2 over 4"},
		{"d: shadow=a +3", "d.shadow", "total 3 near 1 over 2 shadow 3"},
		{"d: detailed=10.0.0.1 +9", "d.detailed_10_0_0_1", "total 9 within 9 near 1"},
		{"d: detailed=a:b|c", "d.detailed_a_b", ""}, // "|" separates two descriptors in this text
		{"d: five=c limit=9/hour", "d.five_c", "total 1 within 1"},
		{"e: five=c", "e.domain_not_found", "total 1"},
	} {
		ask1(t, s, test.asks)
		if test.want != "" {
			assert.Equal(t, test.want, countsOf(s, test.name), test.asks)
		}
	}
	for i := range 100 {
		ask1(t, s, fmt.Sprintf("d: detailed=x%d", i))
	}
	assert.Equal(t, 40, names()-ofRules, "names that stem from requests are bounded")
	assert.NotZero(t, s.stats.Dropped.Load())
}

func countsOf(s *Service, name string) string {
	domain := strings.HasSuffix(name, domainNotFound)
	found, ok := s.stats.names.Load(statName{strings.TrimSuffix(name, domainNotFound), domain})
	if !ok {
		return "no such name"
	}
	r := found.(*ruleStats)
	var words []string
	for _, c := range []struct {
		name  string
		count *atomic.Uint64
	}{
		{"total", &r.totalHits}, {"within", &r.withinLimit}, {"near", &r.nearLimit}, {"over", &r.overLimit},
		{"shadow", &r.shadowMode},
	} {
		if n := c.count.Load(); n > 0 {
			words = append(words, fmt.Sprint(c.name, " ", n))
		}
	}
	return strings.Join(words, " ")
}

// TestDynamicMetadata: an answer has the request, and the metadata of the rules that admitted it. If several have the
// same key, the first value is used.
func TestDynamicMetadata(t *testing.T) {
	const file = `
domain: d
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 1}, metadata: {x: 1, deep: {p: 1}}}
  - {key: b, rate_limit: {unit: minute, requests_per_unit: 9}, metadata: {x: 2, y: 2, deep: {p: 2, q: 2}}}
  - {key: m, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}, metadata: {m: 1}}
  - key: backend_name
    quota_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
    metadata: {v: 1}
`
	s, _ := newService(t, file, Options{DynamicMetadata: true})
	request := asking(t, "d: a=1 | b=1 +2 | b=2 limit=5/hour")
	request.HitsAddend = 1
	response, err := s.ShouldRateLimit(context.Background(), request)
	require.NoError(t, err)
	entry := func(key, value string) []any { return []any{key + "=" + value} }
	assert.Equal(t, map[string]any{
		"domain": "d", "hitsAddend": 1.0,
		"descriptors": []any{
			map[string]any{"entries": entry("a", "1")},
			map[string]any{"entries": entry("b", "1"), "hitsAddend": 2.0},
			map[string]any{"entries": entry("b", "2"), "limit": request.Descriptors[2].GetLimit().String()},
		},
		"metadata": map[string]any{"x": 1.0, "y": 2.0, "deep": map[string]any{"p": 1.0, "q": 2.0}},
	}, response.GetDynamicMetadata().AsMap())

	passed := func(asks string) any { return ask1(t, s, asks).GetDynamicMetadata().AsMap()["metadata"] }
	assert.Equal(t, map[string]any{"x": 2.0, "y": 2.0, "deep": map[string]any{"p": 2.0, "q": 2.0}}, passed("d: a=1 | b=1"))
	assert.Equal(t, map[string]any{"x": 2.0, "y": 2.0, "deep": map[string]any{"p": 2.0, "q": 2.0}}, passed("d: b=1"),
		"a rule's own metadata stays what it is")
	assert.Nil(t, passed("d: a=1"))
	assert.Equal(t, map[string]any{"m": 1.0}, passed("d: m=1 | backend_name=z +2"))
	assert.Nil(t, passed("d: m=1 +5"))
}

// TestReload: counts survive a change of the configuration. A configuration whose limits cannot be counted changes
// nothing.
func TestReload(t *testing.T) {
	s, _ := newService(t, rules, Options{})
	ask1(t, s, "d: five=a +3")
	require.NoError(t, s.SetConfig(compile(t, strings.Replace(rules, "requests_per_unit: 5}", "requests_per_unit: 7}", 1))))
	assert.Equal(t, "OK: ok 3 40s", told(ask1(t, s, "d: five=a")))
	assert.Equal(t, "OK: ok 2 10s", told(ask1(t, s, "d: bucket=a")))

	err := s.SetConfig(compile(t, bucketsFrom(1, 65)))
	assert.ErrorContains(t, err, "d.k64: a window of 1s needs a table, and there are already 64")
	assert.Equal(t, "OK: ok 2 40s", told(ask1(t, s, "d: five=a")))
	assert.EqualValues(t, 2, s.stats.ConfigLoadSuccess.Load())
	assert.EqualValues(t, 1, s.stats.ConfigLoadError.Load())

	before := len(s.tables.stats())
	require.NoError(t, s.SetConfig(compile(t, "domain: d\ndescriptors: [{key: five, rate_limit: {unit: minute, requests_per_unit: 9}}]")))
	assert.Equal(t, before-2, len(s.tables.stats()), "the bucket's and the log's")
	assert.Equal(t, "OK: ok 3 40s", told(ask1(t, s, "d: five=a")))
}

// TestConcurrentHitsAreCountedOnce: concurrent requests pass exactly as many hits as the limit allows.
func TestConcurrentHitsAreCountedOnce(t *testing.T) {
	s, _ := newService(t, "domain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 1000}}]", Options{})
	request := asking(t, "d: k=v")
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				response, err := s.ShouldRateLimit(context.Background(), request)
				if err == nil && response.GetOverallCode() == rlsv3.RateLimitResponse_OK {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 1000, passed.Load())
	assert.Equal(t, "total 4000 within 1000 near 200 over 3000", countsOf(s, "d.k"))
}

// TestTablesAreBounded: requests with their own limits cannot make the number of tables grow without bound.
func TestTablesAreBounded(t *testing.T) {
	s, _ := newService(t, rules, Options{})
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  - {key: k%d, rate_limit: {period: %ds, requests_per_unit: 1}}\n", i, i+1)
	}
	err := s.SetConfig(compile(t, b.String()))
	assert.ErrorContains(t, err, "needs a table, and there are already 64, the maximum")
	assert.LessOrEqual(t, len(s.tables.stats()), maxTables)
	assert.Equal(t, "OK: ok 4 40s", told(ask1(t, s, "d: five=a")))
}

// TestAllocations: a request allocates only its answer. This is as much as in a service that does nothing.
func TestAllocations(t *testing.T) {
	if testrace.Enabled {
		t.Skip("under the race detector a sync.Pool drops what is put into it now and then")
	}
	s, _ := newService(t, rules, Options{})
	request := asking(t, "d: five=a | two=b")
	ctx := context.Background()
	got := testalloc.PerCall(func() { _, _ = s.ShouldRateLimit(ctx, request) })
	assert.LessOrEqual(t, got, 3.0)
}

func TestEveryAlgorithmHasATable(t *testing.T) {
	for _, a := range engine.Algorithms() {
		name := spec.Name(a)
		if a == engine.AlgorithmConcurrency { // Envoy does not report the end of a request
			_, err := config.Parse("a.yaml", []byte("domain: d\ndescriptors: [{key: k, rate_limit: {unit: second, "+
				"requests_per_unit: 3, algorithm: concurrency}}]"))
			assert.ErrorContains(t, err, `algorithm "concurrency": want`)
			continue
		}
		s, _ := newService(t, "domain: d\ndescriptors: [{key: k, rate_limit: {period: 10s, requests_per_unit: 3, algorithm: "+
			string(name)+"}}]", Options{})
		assert.Equal(t, "OK: ok 2", strings.Join(strings.Fields(told(ask1(t, s, "d: k=v")))[:3], " "), a)
		assert.Equal(t, "OVER: over 0", strings.Join(strings.Fields(told(ask1(t, s, "d: k=v +3")))[:3], " "), a)
		if a != engine.AlgorithmFixedWindow { // a fixed window has charged the three refused hits, too
			assert.Equal(t, "OK: ok 0", strings.Join(strings.Fields(told(ask1(t, s, "d: k=v +2")))[:3], " "), a)
		}
	}
}

func bucketsFrom(first, n int) string {
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {key: k%d, rate_limit: {unit: second, requests_per_unit: %d, algorithm: token-bucket, burst: 5}}\n",
			i, first+i)
	}
	return b.String()
}

// TestOldTablesTakeNoRoom: tables of previous configurations do not count towards maxTables.
func TestOldTablesTakeNoRoom(t *testing.T) {
	s, _ := newService(t, bucketsFrom(1, maxTables), Options{})
	assert.ErrorContains(t, s.SetConfig(compile(t, bucketsFrom(100, maxTables+1))), "needs a table, and there are already 64")
	assert.LessOrEqual(t, len(s.tables.stats()), maxTables+1, "what the wrong one needed is gone, and the unit's is there")
	assert.NoError(t, s.SetConfig(compile(t, bucketsFrom(200, maxTables))), "all others")
	for i := range maxTables + 10 {
		file := fmt.Sprintf("domain: d\ndescriptors: [{key: k, rate_limit: {period: %ds, requests_per_unit: 5}}]", 61+i)
		require.NoError(t, s.SetConfig(compile(t, file)), i)
	}
	assert.LessOrEqual(t, len(s.tables.stats()), maxTables)
	for _, unit := range []string{"second", "minute", "hour", "day", "month", "year"} {
		assert.Equal(t, rlsv3.RateLimitResponse_OK, ask1(t, s, "d: own=a limit=5/"+unit).GetOverallCode(), unit)
	}
}

// TestHugeHits: hits beyond every limit are refused, and no sum of hits overflows.
func TestHugeHits(t *testing.T) {
	const huge = "18446744073709551615"
	const file = `
all_or_nothing: true
domain: d
descriptors:
  - {key: none, rate_limit: {unit: minute, requests_per_unit: 0}}
  - {key: window, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: bucket, rate_limit: {unit: minute, requests_per_unit: 5, algorithm: token-bucket, burst: 5}}
`
	for _, key := range []string{"window", "bucket"} {
		s, _ := newService(t, file, Options{})
		ask1(t, s, "d: "+key+"=a")
		statuses := ask1(t, s, "d: none=a | "+key+"=a +"+huge).GetStatuses()
		assert.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, statuses[1].GetCode(), key)
		for _, c := range s.Counters() {
			if c.Name == "ratelimit.service.rate_limit.d."+key+".total_hits" {
				assert.Greater(t, c.Value, uint64(1<<32), key)
			}
		}
	}
}

// TestRequestsLeaveRoomForTheUnits: requests can carry limits with many different windows. Room remains for the table
// of each unit (second, minute and so on).
func TestRequestsLeaveRoomForTheUnits(t *testing.T) {
	s, _ := newService(t, rules, Options{})
	refused := false
	for i := range maxTables {
		_, err := s.ShouldRateLimit(context.Background(), asking(t, fmt.Sprintf("d: own=a limit=5/second/%d", 61+i)))
		refused = refused || err != nil
	}
	assert.True(t, refused)
	for _, unit := range []string{"second", "minute", "hour", "day", "month", "year"} {
		assert.Equal(t, rlsv3.RateLimitResponse_OK, ask1(t, s, "d: own=a limit=5/"+unit).GetOverallCode(), unit)
	}
}

// TestTheMultiplierIsTold: the answer has the multiplier of the unit, in a field of a newer version of the messages.
func TestTheMultiplierIsTold(t *testing.T) {
	s, _ := newService(t, rules, Options{})
	for _, text := range []string{"d: five_minutes=a", "d: five=a limit=2/minute/5"} {
		assert.Equal(t, config.Limit{Multiplier: 5}.EncodedMultiplier(),
			[]byte(ask1(t, s, text).GetStatuses()[0].GetCurrentLimit().ProtoReflect().GetUnknown()), text)
	}
	assert.Empty(t, ask1(t, s, "d: five=a").GetStatuses()[0].GetCurrentLimit().ProtoReflect().GetUnknown())
}

// TestTooManyDescriptors: a request with more than maxDescriptors descriptors is refused, because it would take far
// more memory than its own size.
func TestTooManyDescriptors(t *testing.T) {
	s, _ := newService(t, rules, Options{})
	request := &rlsv3.RateLimitRequest{Domain: "d"}
	for range maxDescriptors {
		request.Descriptors = append(request.Descriptors, &commonv3.RateLimitDescriptor{})
	}
	response, err := s.ShouldRateLimit(context.Background(), request)
	require.NoError(t, err)
	assert.Len(t, response.GetStatuses(), maxDescriptors)
	request.Descriptors = append(request.Descriptors, &commonv3.RateLimitDescriptor{})
	_, err = s.ShouldRateLimit(context.Background(), request)
	assert.EqualError(t, err, "rpc error: code = InvalidArgument desc = 10001 descriptors: want at most 10000")
}

// TestNamesOfRulesLeaveRoomForNamesOfRequests: MaxStats bounds only names from requests, however many rules there are.
func TestNamesOfRulesLeaveRoomForNamesOfRequests(t *testing.T) {
	s, _ := newService(t, rules+"  - {key: k, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 9}}\n", Options{MaxStats: 2})
	for i := range 4 {
		ask1(t, s, fmt.Sprintf("d: k=x%d", i))
	}
	assert.Equal(t, "total 1 within 1", countsOf(s, "d.k_x0"))
	assert.Equal(t, "total 1 within 1", countsOf(s, "d.k_x1"))
	assert.EqualValues(t, 2, s.stats.Dropped.Load())
}

// TestNamesThatRequestsMakeUp: some names in the statistics come from requests. Their length is bounded, and none
// equals the name of a domain's statistic.
func TestNamesThatRequestsMakeUp(t *testing.T) {
	const file = "domain: d\ndescriptors: [{key: k, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 9}}]"
	s, _ := newService(t, file, Options{})
	value := func(name string) (n uint64) {
		for _, c := range s.Counters() {
			if c.Name == "ratelimit.service."+name {
				n = c.Value
			}
			assert.Less(t, len(c.Name), 2*maxStatName)
		}
		return n
	}
	ask1(t, s, "d: k="+strings.Repeat("x", 1<<20))
	assert.EqualValues(t, 1, value("stats_dropped"))
	ask1(t, s, "d: k=x.domain_not_found +7")
	assert.EqualValues(t, 7, value("rate_limit.d.k_x.domain_not_found.total_hits"))
	assert.EqualValues(t, 0, value("rate_limit.d.k_x.domain_not_found"))
	ask1(t, s, "d.k_x: a=b")
	assert.EqualValues(t, 1, value("rate_limit.d.k_x.domain_not_found"))
	assert.EqualValues(t, 7, value("rate_limit.d.k_x.domain_not_found.total_hits"))
}
