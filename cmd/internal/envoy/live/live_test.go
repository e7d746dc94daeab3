package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/weir-go/weir/cmd/internal/admin"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/envoy/metrics"
)

const rules = `
domain: shop
descriptors:
  - key: remote_address
    rate_limit: {unit: minute, requests_per_unit: 100}
  - key: path
    value: /login
    descriptors:
      - key: remote_address
        rate_limit: {unit: hour, requests_per_unit: 5}
  - key: path
    value: /api/*
    rate_limit: {unit: second, requests_per_unit: 50, algorithm: token-bucket, burst: 80}
  - key: tenant
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 20}
  - key: everyone
    value: all
    rate_limit: {unit: hour, unit_multiplier: 6, requests_per_unit: 10000}
  - key: health
    rate_limit: {unlimited: true}
`

// A shop is a service with its page. They are connected as in the program.
type shop struct {
	t       *testing.T
	service *envoy.Service
	page    *Page
}

func newShop(t *testing.T, o Options) *shop {
	s := &shop{t: t, page: New(o)}
	var err error
	s.service, err = envoy.New(envoy.Options{MaxKeys: 1000, Observer: s.page, ShadowMode: o.ShadowMode})
	require.NoError(t, err)
	t.Cleanup(func() { s.service.Close() })
	mapping, err := metrics.DefaultMapping(false)
	require.NoError(t, err)
	require.NoError(t, s.page.Show(s.service, metrics.Collector(s.service, mapping, nil)))
	t.Cleanup(func() { s.page.Close() })
	s.load(rules)
	return s
}

func (s *shop) load(file string) {
	document, err := config.Parse("a.yaml", []byte(file))
	var compiled *config.Config
	if err == nil {
		compiled, err = config.Compile([]*config.Document{document}, config.Options{})
	}
	if err == nil {
		err = s.service.SetConfig(compiled)
	}
	s.page.Reloaded(err)
}

// asked parses a descriptor written as "key=value,key=value".
func asked(text string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for _, entry := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(entry, "=")
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func (s *shop) ask(times int, descriptors ...string) {
	request := &rlsv3.RateLimitRequest{Domain: "shop"}
	for _, text := range descriptors {
		request.Descriptors = append(request.Descriptors, asked(text))
	}
	for range times {
		_, err := s.service.ShouldRateLimit(context.Background(), request)
		require.NoError(s.t, err)
	}
}

func (s *shop) send(method, path, body string) (status int, text string) {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.page.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A state is the part of /state.json that these tests check.
type state struct {
	Program  string
	Reload   admin.Reload
	Requests struct{ Total uint64 }
	Tables   []struct{ Name string }
	Rules    []struct {
		Name, Policy, For, By string
		Shadow                bool
		Parts                 []string
		Total                 map[string]uint64
	}
	Refused struct {
		Keys []struct {
			Key, Hash string
			Rules     []struct{ Rule string }
			Least     uint64
		}
	}
}

func (s *shop) state() (now state) {
	_, text := s.send(http.MethodGet, "/state.json", "")
	require.NoError(s.t, json.Unmarshal([]byte(text), &now), text)
	return now
}

// TestDecisionsAreShown: the page shows each decision as it is in the answer.
func TestDecisionsAreShown(t *testing.T) {
	s := newShop(t, Options{Keys: admin.KeysFull})
	s.ask(8, "path=/login,remote_address=192.0.2.1", "remote_address=192.0.2.1")
	s.ask(25, "tenant=a", "health=x", "none=of these")
	_, err := s.service.ShouldRateLimit(context.Background(), &rlsv3.RateLimitRequest{Domain: "shop"})
	require.Error(t, err)

	now := s.state()
	assert.Equal(t, "weir-envoy", now.Program)
	assert.EqualValues(t, 34, s.page.requests().Answered)
	assert.EqualValues(t, 3, s.page.requests().Refused)
	assert.EqualValues(t, 1, s.page.requests().Failures)
	var told []string
	for _, r := range now.Rules {
		told = append(told, fmt.Sprintf("%s | %s | %s | %s | %v | %d %d %d", r.Name, r.Policy, r.For, r.By, r.Shadow,
			r.Total["allowed"], r.Total["refused"], r.Total["shadow_refused"]))
	}
	assert.Equal(t, []string{
		"shop.remote_address | 100 per minute, fixed window | domain shop | entry:remote_address | false | 8 0 0",
		"shop.path_/login.remote_address | 5 per hour, fixed window | domain shop, path=/login | entry:remote_address | false | 5 3 0",
		"shop.path_/api/* | 50 per second, burst 80, token bucket | domain shop | entry:path (/api/*) | false | 0 0 0",
		"shop.tenant | 20 per day, fixed window | domain shop | entry:tenant | true | 20 0 5",
		"shop.everyone_all | 10000 per 6 hours, fixed window | domain shop, everyone=all | global | false | 0 0 0",
	}, told)
	require.Len(t, now.Refused.Keys, 2)
	assert.Equal(t, "shop.tenant", now.Refused.Keys[0].Rules[0].Rule)
	assert.Equal(t, "tenant=a", now.Refused.Keys[0].Key)
	assert.Equal(t, "path=/login · remote_address=192.0.2.1", now.Refused.Keys[1].Key)
	assert.EqualValues(t, 3, now.Refused.Keys[1].Least)
	assert.Len(t, now.Tables, 6, "second, minute, hour, six hours, day, the bucket")
}

// TestPeekAndReset: an operator can peek at and reset a key that is typed or listed. A peek counts nothing.
func TestPeekAndReset(t *testing.T) {
	s := newShop(t, Options{Reset: true})
	s.ask(8, "path=/login,remote_address=192.0.2.1")
	const login = `{"rule":"shop.path_/login.remote_address","parts":["192.0.2.1"]}`
	_, typed := s.send("POST", "/key/peek", login)
	assert.Contains(t, typed, `"recorded":true,"limit":5,"remaining":0,`)
	assert.Contains(t, typed, `"allowed":false`)
	listed := s.state().Refused.Keys[0]
	assert.Empty(t, listed.Key, "hashed")
	_, byHash := s.send("POST", "/key/peek", fmt.Sprintf(`{"rule":%q,"hash":%q}`, listed.Rules[0].Rule, listed.Hash))
	assert.Equal(t, typed, byHash)
	_, other := s.send("POST", "/key/peek", strings.Replace(login, "192.0.2.1", "192.0.2.2", 1))
	assert.Contains(t, other, `"recorded":false,"limit":5,"remaining":5,"retry_after":"now","reset_after":"now","allowed":true`)
	_, bucket := s.send("POST", "/key/peek", `{"rule":"shop.path_/api/*","parts":["/api/x"]}`)
	assert.Contains(t, bucket, `"limit":80,"remaining":80`)
	_, all := s.send("POST", "/key/peek", `{"rule":"shop.everyone_all","parts":[]}`)
	assert.Contains(t, all, `"limit":10000,"remaining":10000`)

	status, text := s.send("POST", "/key/peek", `{"rule":"shop.path_/api/*","parts":["/other"]}`)
	assert.Equal(t, 422, status)
	assert.Contains(t, text, "no rule of domain")

	_, reset := s.send("POST", "/key/reset", login)
	assert.Contains(t, reset, `"recorded":true,"limit":5,"remaining":5`)
	s.ask(5, "path=/login,remote_address=192.0.2.1")
	assert.EqualValues(t, 10, s.state().Rules[1].Total["allowed"])

	closed := newShop(t, Options{})
	closed.ask(8, "path=/login,remote_address=192.0.2.1")
	status, _ = closed.send("POST", "/key/reset", login)
	assert.Equal(t, http.StatusForbidden, status)
	_, typed = closed.send("POST", "/key/peek", login)
	assert.Contains(t, typed, `"remaining":0,`)
}

// TestPeekOfAKeyPattern: for an entry whose key is a pattern, the operator types key=value.
func TestPeekOfAKeyPattern(t *testing.T) {
	s := newShop(t, Options{})
	s.load("domain: shop\ndescriptors: [{key: user*, rate_limit: {unit: day, requests_per_unit: 9}}]")
	s.ask(2, "user_id=7")
	assert.Equal(t, "domain shop", s.page.rules()[0].For)
	_, typed := s.send("POST", "/key/peek", `{"rule":"shop.user*","parts":["user_id=7"]}`)
	assert.Contains(t, typed, `"limit":9,"remaining":7`)
	_, other := s.send("POST", "/key/peek", `{"rule":"shop.user*","parts":["user_id=8"]}`)
	assert.Contains(t, other, `"limit":9,"remaining":9`)
}

// TestPeekOfAValueWithALimit: the page shows a value's own limit. A reset works even if this limit counts nothing.
func TestPeekOfAValueWithALimit(t *testing.T) {
	for _, algorithm := range []string{"fixed-window", "token-bucket", "sliding-window"} {
		s := newShop(t, Options{Reset: true})
		plans := filepath.Join(t.TempDir(), "plans.csv")
		load := func(text, more string) {
			require.NoError(t, os.WriteFile(plans, []byte(text), 0o600))
			s.load(fmt.Sprintf("domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 9, algorithm: %s, quotas: {file: %q%s}}}]",
				algorithm, plans, more))
		}
		peek := func(user string) string {
			_, said := s.send("POST", "/key/peek", `{"rule":"shop.user","parts":["`+user+`"]}`)
			return said
		}
		load("anna,20/d\nberta,0\ncarl,unlimited\n", "")
		for _, user := range []string{"anna", "berta", "carl", "dora"} {
			s.ask(2, "user="+user)
		}
		assert.Contains(t, peek("anna"), `"limit":20,"remaining":18`, algorithm)
		assert.Contains(t, peek("berta"), `"limit":0,"remaining":0,"retry_after":"never"`, algorithm)
		assert.Contains(t, peek("berta"), `"allowed":false`, algorithm)
		assert.Contains(t, peek("carl"), `"limit":18446744073709551615,`, algorithm)
		assert.Contains(t, peek("dora"), `"limit":9,"remaining":7`, algorithm)
		load("berta,5/d\n", ", unknown: refuse")
		assert.Contains(t, peek("anna"), `"limit":0,"remaining":0`, algorithm)
		_, reset := s.send("POST", "/key/reset", `{"rule":"shop.user","parts":["anna"]}`)
		assert.Contains(t, reset, `"limit":0,"remaining":0`, algorithm)
		load("anna,20/d\n", "")
		assert.Contains(t, peek("anna"), `"limit":20,"remaining":20`, algorithm)
	}
}

// TestPeekOfAListedValueWithALimit: a refused key in the list is shown under the limit that refused it. This may be the
// value's own limit.
func TestPeekOfAListedValueWithALimit(t *testing.T) {
	for _, algorithm := range []string{"fixed-window", "token-bucket", "sliding-window"} {
		s := newShop(t, Options{Reset: true})
		plans := filepath.Join(t.TempDir(), "plans.csv")
		require.NoError(t, os.WriteFile(plans, []byte("anna,2/d\n"), 0o600))
		s.load(fmt.Sprintf("domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 9, algorithm: %s, quotas: {file: %q}}}]",
			algorithm, plans))
		s.ask(5, "user=anna")
		listed := s.state().Refused.Keys[0]
		_, byHash := s.send("POST", "/key/peek", fmt.Sprintf(`{"rule":%q,"hash":%q}`, listed.Rules[0].Rule, listed.Hash))
		assert.Contains(t, byHash, `"limit":2,"remaining":0`, algorithm)
		_, typed := s.send("POST", "/key/peek", `{"rule":"shop.user","parts":["anna"]}`)
		assert.Equal(t, typed, byHash, algorithm)
	}
}

// TestPeekOfOneOfSeveralLimits: each limit of a descriptor is a separate rule with its own counter.
func TestPeekOfOneOfSeveralLimits(t *testing.T) {
	s := newShop(t, Options{Reset: true})
	s.load("domain: shop\ndescriptors: [{key: user, rate_limits: [{unit: day, requests_per_unit: 9}, {unit: week, requests_per_unit: 20}]}]")
	s.ask(2, "user=7")
	for rule, left := range map[string]string{"shop.user_per_day": `"limit":9,"remaining":7`, "shop.user_per_week": `"limit":20,"remaining":18`} {
		_, typed := s.send("POST", "/key/peek", `{"rule":"`+rule+`","parts":["7"]}`)
		assert.Contains(t, typed, left)
	}
	_, reset := s.send("POST", "/key/reset", `{"rule":"shop.user_per_day","parts":["7"]}`)
	assert.Contains(t, reset, `"limit":9,"remaining":9`)
	_, typed := s.send("POST", "/key/peek", `{"rule":"shop.user_per_week","parts":["7"]}`)
	assert.Contains(t, typed, `"limit":20,"remaining":18`)
}

// TestReloadsAreTold: the page shows the number of the configuration (its generation) and the last reload error. Counts
// continue after a reload.
func TestReloadsAreTold(t *testing.T) {
	s := newShop(t, Options{})
	s.ask(3, "remote_address=a")
	s.load("domain: shop\ndescriptors: [{key: remote_address, rate_limit: {unit: fortnight, requests_per_unit: 1}}]")
	now := s.state()
	assert.False(t, now.Reload.OK)
	assert.Equal(t, "a.yaml:2:56: invalid rate limit unit 'fortnight'", now.Reload.Error)
	assert.EqualValues(t, 1, now.Reload.Generation)
	assert.Len(t, now.Rules, 5)
	s.load(strings.Replace(rules, "requests_per_unit: 100", "requests_per_unit: 4", 1))
	s.ask(3, "remote_address=a")
	now = s.state()
	assert.True(t, now.Reload.OK)
	assert.EqualValues(t, 2, now.Reload.Generation)
	assert.EqualValues(t, 4, now.Rules[0].Total["allowed"])
	assert.EqualValues(t, 2, now.Rules[0].Total["refused"])
}

// TestMoreRulesThanAreShown: the page has at most maxCards cards for rules. All other rules share one card, which
// counts all their decisions. Limits that requests carry have a separate card.
func TestMoreRulesThanAreShown(t *testing.T) {
	s := newShop(t, Options{})
	var b strings.Builder
	b.WriteString("domain: shop\ndescriptors:\n")
	for i := range maxCards + 20 {
		fmt.Fprintf(&b, "  - {key: k%d, rate_limit: {unit: hour, requests_per_unit: 2}}\n", i)
	}
	// In statistics, this rule has the name shop.a_b. Two rules of the second file below have the same name.
	b.WriteString("  - {key: 'a|b', rate_limit: {unit: hour, requests_per_unit: 2}}\n")
	s.load(b.String())
	for i := range maxCards + 20 {
		s.ask(3, fmt.Sprintf("k%d=a", i))
	}
	_, err := s.service.ShouldRateLimit(context.Background(), &rlsv3.RateLimitRequest{
		Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "own"}},
			Limit:   &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: typev3.RateLimitUnit_HOUR},
		}},
	})
	require.NoError(t, err)
	now, allowed, refused := s.state(), uint64(0), uint64(0)
	require.Len(t, now.Rules, maxCards+2)
	for _, r := range now.Rules {
		allowed, refused = allowed+r.Total["allowed"], refused+r.Total["refused"]
	}
	assert.EqualValues(t, 2*(maxCards+20)+1, allowed)
	assert.EqualValues(t, maxCards+20, refused)
	assert.Equal(t, otherRulesCard, now.Rules[maxCards].Name)
	assert.Equal(t, "21 rules", now.Rules[maxCards].Policy)
	assert.Equal(t, overridesCard, now.Rules[maxCards+1].Name)
	assert.EqualValues(t, 1, now.Rules[maxCards+1].Total["allowed"])

	s.load("domain: shop\ndescriptors:\n  - {key: 'a|b', rate_limit: {unit: hour, requests_per_unit: 2}}\n" +
		"  - {key: 'a:b', rate_limit: {unit: hour, requests_per_unit: 2}}\n")
	assert.Equal(t, "shop.a_b (2)", s.state().Rules[1].Name)
}

// TestTexts: different descriptors have different texts, and each text can be parsed again.
func TestTexts(t *testing.T) {
	for _, d := range []*commonv3.RateLimitDescriptor{
		asked("a=b"), asked("a="), asked("a=b,c=d"), asked("a=b · c"), asked(`a="b"`), asked("a= b"), asked("=x"),
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "a", Value: "b · c=d"}}},
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "a=b", Value: "\n\u202e\x00"}, {Key: `"`, Value: `\`}}},
	} {
		got, err := parse(text(d))
		require.NoError(t, err, text(d))
		assert.True(t, proto.Equal(d, got), text(d))
	}
	assert.Equal(t, `a="b · c=d"`, text(&commonv3.RateLimitDescriptor{
		Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "a", Value: "b · c=d"}}}))
	assert.NoError(t, quick.Check(func(texts []string) bool {
		d := &commonv3.RateLimitDescriptor{}
		for i := 0; i+1 < len(texts); i += 2 {
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{
				Key: strings.ToValidUTF8(texts[i], "·"), Value: strings.ToValidUTF8(texts[i+1], "=")})
		}
		got, err := parse(text(d))
		return len(d.Entries) == 0 || err == nil && proto.Equal(d, got)
	}, nil))
	for _, wrong := range []string{"", "a", `"a=b`, "a=b · c", `"a"b=c`, `a="b"c`} {
		_, err := parse(wrong)
		assert.Error(t, err, wrong)
	}
}

// TestShadowModeOfAll: in shadow mode for all rules, nothing is refused and the page shows no refusals.
func TestShadowModeOfAll(t *testing.T) {
	s := newShop(t, Options{ShadowMode: true})
	s.ask(8, "path=/login,remote_address=192.0.2.1")
	rule := s.state().Rules[1]
	assert.True(t, rule.Shadow)
	assert.EqualValues(t, 3, rule.Total["shadow_refused"])
	assert.EqualValues(t, 0, rule.Total["refused"])
	assert.Zero(t, s.page.requests().Refused)
}

// TestMetricsOfThePage: one page has the metrics of the rules and of the service.
func TestMetricsOfThePage(t *testing.T) {
	s := newShop(t, Options{})
	s.ask(8, "path=/login,remote_address=192.0.2.1")
	code, text := s.send(http.MethodGet, "/metrics", "")
	assert.Equal(t, 200, code)
	assert.Contains(t, text, `weir_requests_total{outcome="refused",rule="shop.path_/login.remote_address"} 3`)
	assert.Contains(t, text, `ratelimit_service_rate_limit_over_limit{domain="shop",key1="path_/login",key2="remote_address"} 3`)
}
