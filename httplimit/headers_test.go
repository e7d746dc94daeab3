package httplimit_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/testclock"
)

const allStyles = httplimit.IETF | httplimit.Legacy | httplimit.Draft06

func TestHeaderStyles(t *testing.T) {
	ietf := http.Header{"Ratelimit-Policy": {`"default";q=5;w=5`}, "Ratelimit": {`"default";r=4;t=1`}}
	legacy := http.Header{"X-Ratelimit-Limit": {"5"}, "X-Ratelimit-Remaining": {"4"},
		"X-Ratelimit-Reset": {"1772366401"}}
	draft06 := http.Header{"Ratelimit-Limit": {"5"}, "Ratelimit-Remaining": {"4"}, "Ratelimit-Reset": {"1"}}
	union := func(headers ...http.Header) http.Header {
		all := http.Header{}
		for _, h := range headers {
			for name, values := range h {
				all[name] = values
			}
		}
		return all
	}
	for styles, want := range map[httplimit.HeaderStyle]http.Header{
		httplimit.IETF:                    ietf,
		httplimit.Legacy:                  legacy,
		httplimit.Draft06:                 draft06,
		httplimit.IETF | httplimit.Legacy: union(ietf, legacy),
		allStyles:                         union(ietf, legacy, draft06),
		httplimit.NoHeaders:               {},
	} {
		c := testclock.New()
		m := one(t, httplimit.Limit{Limiter: c.Burst(t, 5)}, httplimit.Headers(styles), httplimit.Clock(c.Now))
		h := http.Header{}
		res := m.Decide(get("/"))
		res.WriteHeaders(h)
		assert.Equal(t, want, h)
		fields := http.Header{}
		for _, name := range styles.Fields() {
			fields.Set(name, h.Get(name))
		}
		assert.Equal(t, want, fields, "Fields has their names")
		statuses(m.Handler(hello), 4)
		w := serve(m.Handler(hello), get("/"))
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Len(t, w.Header(), len(want)+3, "Retry-After, and the body's type")
	}
	m := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 5)})
	assert.Equal(t, union(ietf, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}),
		serve(m.Handler(hello), get("/")).Result().Header, "the default")
}

// TestRounding: times in headers are rounded. A client that obeys them does not come back too early.
func TestRounding(t *testing.T) {
	c := testclock.New()
	c.Advance(300 * time.Millisecond)
	m := one(t, httplimit.Limit{Limiter: c.Limiter(t, engine.FixedWindow(1, 1500*time.Millisecond))},
		httplimit.Headers(allStyles), httplimit.Clock(c.Now))
	h := m.Handler(hello)
	get := func() http.Header { return serve(h, get("/")).Header() }
	first := get()
	assert.Equal(t, `"default";q=1;w=2`, first.Get("RateLimit-Policy"))
	assert.Equal(t, `"default";r=0;t=2`, first.Get("RateLimit"))
	assert.Equal(t, strconv.FormatInt(c.Now().Unix()+2, 10), first.Get("X-RateLimit-Reset"), "300 ms + 1500 ms")
	c.Advance(time.Second - 1)
	assert.Equal(t, "1", get().Get("Retry-After"), "500 ms and a nanosecond")
	c.Advance(1)
	assert.Equal(t, "1", get().Get("Retry-After"))
	c.Advance(500*time.Millisecond - 1)
	late := get()
	assert.Equal(t, "1", late.Get("Retry-After"), "a nanosecond")
	assert.Equal(t, `"default";r=0;t=1`, late.Get("RateLimit"))
	assert.Equal(t, "1", late.Get("RateLimit-Reset"))
	c.Advance(1)
	assert.Empty(t, get().Get("Retry-After"), "and then it passes")
}

// TestRetryAfterIsTrue: a client that comes back after Retry-After is admitted. A second earlier, it is refused. This
// is tested with every algorithm.
func TestRetryAfterIsTrue(t *testing.T) {
	for _, policy := range []engine.Policy{
		engine.TokenBucket(engine.Per(7, time.Minute), 3), engine.BatchRefill(2, 10*time.Second, 3),
		engine.FixedWindow(3, time.Minute),
		engine.FixedWindow(3, time.Minute).Aligned(), engine.SlidingWindow(3, time.Minute),
		engine.SlidingLog(3, time.Minute),
	} {
		c := testclock.New()
		c.Advance(12_345_678_901)
		h := one(t, httplimit.Limit{Limiter: c.Limiter(t, policy)}).Handler(hello)
		statuses(h, 3)
		w := serve(h, get("/"))
		wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
		require.NoError(t, err, policy)
		requireHeadersHold(t, w.Result())
		c.Advance(time.Duration(wait-1) * time.Second)
		assert.Equal(t, 429, serve(h, get("/")).Code, policy)
		c.Advance(time.Second)
		assert.Equal(t, 200, serve(h, get("/")).Code, policy)
	}
}

func TestNever(t *testing.T) {
	c := testclock.New()
	l := shared("small", c.Burst(t, 5))
	l.Cost = func(*http.Request) uint64 { return 6 }
	other := shared("other", c.Burst(t, 9))
	m := newMiddleware(t, []httplimit.Limit{other, l}, httplimit.RetryJitter(time.Minute, nil))
	w := serve(m.Handler(hello), get("/"))
	assert.Equal(t, 429, w.Code)
	assert.NotContains(t, w.Header(), "Retry-After")
	assert.Equal(t, `"small";r=5;t=0`, w.Header().Get("RateLimit"))
	var problem map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &problem))
	assert.Equal(t, "This request can never be admitted: it costs 6 and the limit is 5.", problem["detail"])
	assert.EqualValues(t, 9, left(other.Limiter), "nothing was taken")
	res := m.Decide(get("/"))
	assert.Equal(t, engine.Never, res.RetryAfter())
}

func TestRetryJitter(t *testing.T) {
	c := testclock.New()
	for random, want := range map[float64]string{0: "1", 0.33: "2", 0.5: "3", 0.999999: "4"} {
		m := one(t, httplimit.Limit{Limiter: c.Burst(t, 1)}, httplimit.Body(httplimit.PlainJSON),
			httplimit.RetryJitter(3*time.Second, func() float64 { return random }))
		statuses(m.Handler(hello), 1)
		w := serve(m.Handler(hello), get("/"))
		assert.Equal(t, want, w.Header().Get("Retry-After"))
		assert.Equal(t, `{"error":"Too many requests","retryAfter":`+want+"}\n", w.Body.String(), "header and body agree")
		assert.Equal(t, `"default";r=0;t=1`, w.Header().Get("RateLimit"))
		requireHeadersHold(t, w.Result())
	}
	m := one(t, httplimit.Limit{Limiter: c.Burst(t, 1)}, httplimit.RetryJitter(3*time.Second, nil))
	statuses(m.Handler(hello), 1)
	for range 50 {
		res := m.Decide(get("/"))
		assert.GreaterOrEqual(t, res.RetryAfter(), time.Second)
		assert.LessOrEqual(t, res.RetryAfter(), 4*time.Second)
	}
}

// TestHeadersFollowSetPolicy: headers show the numbers that are active after SetPolicy.
func TestHeadersFollowSetPolicy(t *testing.T) {
	c := testclock.New()
	l := c.Limiter(t, engine.FixedWindow(4, time.Minute))
	h := one(t, httplimit.Limit{Limiter: l}).Handler(hello)
	assert.Equal(t, `"default";q=4;w=60`, serve(h, get("/")).Header().Get("RateLimit-Policy"))
	require.NoError(t, l.SetPolicy(engine.FixedWindow(4, time.Hour)))
	assert.Equal(t, `"default";q=4;w=3600`, serve(h, get("/")).Header().Get("RateLimit-Policy"))
	require.NoError(t, l.SetPolicy(engine.FixedWindow(8, time.Hour)))
	w := serve(h, get("/")).Header()
	assert.Equal(t, `"default";q=8;w=3600`, w.Get("RateLimit-Policy"))
	assert.Contains(t, w.Get("RateLimit"), `"default";r=5;`, "two were used up, and one more is now")
}

func TestUnitAndNames(t *testing.T) {
	name := ` "quoted\", with; every=thing, ~`
	m := one(t, httplimit.Limit{Name: name, Limiter: testclock.New().Burst(t, 1), Unit: `content-"bytes"`}, httplimit.Headers(allStyles))
	for range 2 {
		w := serve(m.Handler(hello), get("/"))
		requireHeadersHold(t, w.Result())
		assert.Equal(t, `" \"quoted\\\", with; every=thing, ~";q=1;qu="content-\"bytes\"";w=1`, w.Header().Get("RateLimit-Policy"))
		if w.Code == 429 {
			var problem struct {
				Violated []string `json:"violated-policies"`
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &problem))
			assert.Equal(t, []string{name}, problem.Violated)
		}
	}
}

// TestPartitionKeys: the parameter pk is equal for equal keys and different for different keys. It does not contain the
// key.
func TestPartitionKeys(t *testing.T) {
	c := testclock.New()
	key := header(t, "X-API-Key", nil)
	pk := func(m *httplimit.Middleware, value string) []byte {
		w := serve(m.Handler(hello), getFrom(direct, "X-API-Key", value))
		requireHeadersHold(t, w.Result())
		item := parseList(t, w.Header().Values("RateLimit"))[0]
		bytes, ok := item.params["pk"]
		require.True(t, ok)
		policy := parseList(t, w.Header().Values("RateLimit-Policy"))[0].params["pk"]
		assert.Equal(t, bytes, policy)
		return bytes.([]byte)
	}
	secret := []byte("0123456789abcdef")
	limit := httplimit.Limit{Limiter: c.Burst(t, 9), Key: key}
	a, b := one(t, limit, httplimit.PartitionKeys(secret)), one(t, limit, httplimit.PartitionKeys(secret))
	random := one(t, limit, httplimit.PartitionKeys(nil))
	assert.Len(t, pk(a, "secret"), 8)
	assert.Equal(t, pk(a, "secret"), pk(b, "secret"))
	assert.NotEqual(t, pk(a, "secret"), pk(a, "other"))
	assert.NotEqual(t, pk(a, "secret"), pk(random, "secret"))
}

// TestOnTheWire: HTTP/1 sends canonical names, and HTTP/2 sends lower case. Get finds both.
func TestOnTheWire(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		m := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1)}, httplimit.Headers(allStyles))
		s := httptest.NewUnstartedServer(m.Handler(hello))
		s.EnableHTTP2 = http2
		s.StartTLS()
		for _, status := range []int{200, 429} {
			resp, err := s.Client().Get(s.URL)
			require.NoError(t, err)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			assert.Equal(t, status, resp.StatusCode)
			assert.Equal(t, http2, resp.ProtoMajor == 2)
			for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Reset",
				"RateLimit-Remaining"} {
				assert.NotEmpty(t, resp.Header.Get(name), name)
			}
			requireHeadersHold(t, resp)
		}
		s.Client().CloseIdleConnections()
		s.Close()
	}

	s := startServer(t, one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 1)}).Handler(hello))
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	raw, err := io.ReadAll(bufio.NewReader(conn))
	require.NoError(t, err)
	assert.Contains(t, string(raw), "\r\nRatelimit: \"default\";r=0;t=1\r\nRatelimit-Policy: \"default\";q=1;w=1\r\n")
}

// TestHeadersAreThisRequestsOwn: a handler may change the values of a header. This changes neither other headers nor
// later answers.
func TestHeadersAreThisRequestsOwn(t *testing.T) {
	m := one(t, httplimit.Limit{Limiter: testclock.New().Burst(t, 9)}, httplimit.Headers(allStyles))
	h := http.Header{}
	res := m.Decide(get("/"))
	res.WriteHeaders(h)
	before := h.Clone()
	for name := range h {
		h.Add(name, "added")
	}
	for name, values := range h {
		assert.Equal(t, []string{before.Get(name), "added"}, values, name)
		values[0] = "broken"
	}
	requireHeadersHold(t, serve(m.Handler(hello), get("/")).Result())
}

// An item is a string with parameters, as in a structured field (RFC 9651).
type item struct {
	value  string
	params map[string]any // string, int64 or []byte
}

// This is the grammar of the part of RFC 9651 that weir writes. fuzz/headers_test.go reads the headers with a complete
// parser.
const (
	sfString = `"(?:[ !#-\[\]-~]|\\["\\])*"`
	sfParam  = `;([a-z*][a-z0-9_.*-]*)=(` + sfString + `|-?[0-9]{1,15}|:[A-Za-z0-9+/]*={0,2}:)`
)

var (
	sfItem     = regexp.MustCompile(`^(` + sfString + `)((?:` + sfParam + `)*)(?:, |$)`)
	sfOneParam = regexp.MustCompile(sfParam)
	sfEscape   = regexp.MustCompile(`\\(.)`)
)

func parseList(t testing.TB, lines []string) (items []item) {
	t.Helper()
	text := func(quoted string) string { return sfEscape.ReplaceAllString(quoted[1:len(quoted)-1], "$1") }
	list := strings.Join(lines, ", ")
	require.False(t, strings.HasSuffix(list, ", "), "%q ends in a comma", list)
	for rest := list; rest != ""; {
		found := sfItem.FindStringSubmatch(rest)
		require.NotNil(t, found, "%q is no structured field", rest)
		i := item{value: text(found[1]), params: map[string]any{}}
		for _, param := range sfOneParam.FindAllStringSubmatch(found[2], -1) {
			name, value := param[1], param[2]
			require.NotContains(t, i.params, name, "every parameter once")
			switch value[0] {
			case '"':
				i.params[name] = text(value)
			case ':':
				decoded, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
				require.NoError(t, err, value)
				i.params[name] = decoded
			default:
				n, err := strconv.ParseInt(value, 10, 64)
				require.NoError(t, err)
				i.params[name] = n
			}
		}
		items, rest = append(items, i), rest[len(found[0]):]
	}
	return items
}

// requireHeadersHold requires that the headers of an answer meet the rules of the draft and of RFC 9651.
func requireHeadersHold(t testing.TB, resp *http.Response) {
	t.Helper()
	integer := func(item item, name string, least int64) int64 {
		value, ok := item.params[name]
		require.True(t, ok, name)
		n, ok := value.(int64)
		require.True(t, ok, "%s is %T", name, value)
		require.GreaterOrEqual(t, n, least, name)
		return n
	}
	quotas := map[string]int64{}
	for _, item := range parseList(t, resp.Header.Values("RateLimit-Policy")) {
		name := item.value
		require.NotContains(t, quotas, name, "every policy once")
		quotas[name] = integer(item, "q", 0)
		if _, ok := item.params["w"]; ok {
			integer(item, "w", 1)
		}
	}
	var tightest int64
	if lines := resp.Header.Values("RateLimit"); len(lines) > 0 {
		items := parseList(t, lines)
		require.Len(t, items, 1)
		require.Contains(t, quotas, items[0].value)
		require.LessOrEqual(t, integer(items[0], "r", 0), quotas[items[0].value])
		tightest = integer(items[0], "t", 0)
	}
	if retry := resp.Header.Get("Retry-After"); retry != "" {
		seconds, err := strconv.ParseInt(retry, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, seconds, max(tightest, 1))
		require.Contains(t, []int{429, 503}, resp.StatusCode)
	}
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Limit",
		"RateLimit-Remaining", "RateLimit-Reset"} {
		if values := resp.Header.Values(name); len(values) > 0 {
			require.Len(t, values, 1)
			_, err := strconv.ParseUint(values[0], 10, 63)
			require.NoError(t, err, name)
		}
	}
}

// TestAnObedientClientIsAsFastAsItMayBe: a client spreads the tokens that it has left over the time t. It then sends at
// the rate of the limit, and is never refused.
func TestAnObedientClientIsAsFastAsItMayBe(t *testing.T) {
	for _, used := range []int{1, 5, 15, 19, 20} {
		c := testclock.New()
		m := one(t, shared("a", c.Limiter(t, engine.TokenBucket(engine.PerSecond(1), 20))))
		ask := func() *httptest.ResponseRecorder { return serve(m.Handler(hello), get("/")) }
		for range used - 1 {
			ask()
		}
		begin := c.Now()
		for i := range 100 {
			w := ask()
			require.Equal(t, http.StatusOK, w.Code, "%d used, request %d", used, i)
			var left, seconds int64
			_, err := fmt.Sscanf(w.Header().Get("RateLimit"), `"a";r=%d;t=%d`, &left, &seconds)
			require.NoError(t, err)
			if i == 0 && used == 15 {
				assert.Equal(t, `"a";r=5;t=5`, w.Header().Get("RateLimit"))
			}
			c.Advance(time.Duration(seconds) * time.Second / time.Duration(max(left, 1)))
		}
		assert.LessOrEqual(t, c.Now().Sub(begin), 100*time.Second, "%d used", used)
	}
}
