package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limitertest/check"
)

var (
	plain  = Request{Method: http.MethodGet, Target: "/login"}
	target = Target{URL: &url.URL{Scheme: "http", Host: "localhost:80", Path: "/login"}, Address: netip.MustParseAddrPort("127.0.0.1:80")}
)

// audited audits a simulated server with the limit p in virtual time. The function change sets the server's other
// properties.
func audited(t *testing.T, p engine.Policy, change func(*simulated)) *Report {
	return auditedBy(t, Options{Requests: 1500, Time: time.Minute}, p, change)
}

func auditedBy(t *testing.T, o Options, p engine.Policy, change func(*simulated)) (r *Report) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, p, 0, 3)
		change(s)
		var err error
		r, err = Run(t.Context(), s, plain, target, o)
		require.NoError(t, err)
	})
	return r
}

func (r *Report) way(t *testing.T, name string) *Way {
	for _, w := range r.Ways {
		if w.Name == name {
			return w
		}
	}
	t.Fatalf("no way %q", name)
	return nil
}

// TestWhatGoesAroundIsFound: a variant of the request has its own bucket, so it passes while the plain request is
// refused. The audit finds it.
func TestWhatGoesAroundIsFound(t *testing.T) {
	r := audited(t, engine.TokenBucket(engine.PerSecond(5), 10), func(s *simulated) {
		s.key = func(ask Request) string {
			key := ask.From + strings.TrimSuffix(ask.Target, "/")
			for _, f := range ask.Fields {
				if f[0] == "X-Forwarded-For" {
					key += f[1]
				}
			}
			return key
		}
	})
	assert.Equal(t, "the address of the client", r.Key)
	for name, passes := range map[string]bool{"from 127.0.0.2": true, "X-Forwarded-For: 203.0.113.7": true, "X-Real-IP: 203.0.113.7": false,
		"/login/": false, "//login": true, "HEAD": false, "three in one packet": false, "/login with another query": true} {
		w := r.way(t, name)
		assert.Equal(t, passes, w.Passes, name)
		assert.Equal(t, !passes, w.Refused, name)
	}
	text := &strings.Builder{}
	require.NoError(t, r.WriteText(text))
	assert.Contains(t, text.String(), "passes while the plain request is refused: header X-Forwarded-For: 203.0.113.7\n")
	assert.Contains(t, text.String(), "key       the address of the client\n")
	assert.Positive(t, r.Faults)

	if testing.Short() {
		return
	}
	clean := audited(t, engine.TokenBucket(engine.PerSecond(5), 10), func(s *simulated) { s.key = func(ask Request) string { return ask.From } })
	assert.Zero(t, clean.Faults, "%+v", clean)
	global := audited(t, engine.TokenBucket(engine.PerSecond(5), 10), func(*simulated) {})
	assert.Equal(t, "not the address of the client", global.Key)
	assert.Contains(t, global.Rules, "key: global\n")
}

// TestNoWayIsAccusedWhileTokensComeBack: all variants of a request share one bucket. A refusal with a large header
// takes longer than a token takes to come back, so the next variant may pass by this token. The audit must not report
// it.
func TestNoWayIsAccusedWhileTokensComeBack(t *testing.T) {
	for slow, why := range map[time.Duration]string{
		100 * time.Millisecond: "the limit is undecided",
		60 * time.Millisecond:  "tokens come back faster than four refusals take",
	} {
		r := auditedBy(t, Options{Requests: 600, Time: 30 * time.Second}, engine.TokenBucket(engine.PerSecond(5), 10), func(s *simulated) { s.slow = slow })
		assert.Empty(t, r.Ways, slow)
		text := &strings.Builder{}
		require.NoError(t, r.WriteText(text))
		assert.Contains(t, text.String(), "key       not known\n  not tried: ways around the limit: "+why+"\n")
		assert.NotContains(t, text.String(), "passes while")
		assert.Equal(t, min(len(r.Undecided), 1), r.Faults, "that it is undecided")
	}
}

// TestFieldsAreHeldAgainstTheLimit: the audit compares fields of answers with the limit, and finds exactly the wrong
// fields.
func TestFieldsAreHeldAgainstTheLimit(t *testing.T) {
	said := func(wait time.Duration, left int) func(s *simulated) {
		return func(s *simulated) {
			s.answer = func(d engine.Decision, a *Answer) {
				if !d.Allowed {
					a.Header.Set("Retry-After", fmt.Sprint(int((d.RetryAfter+wait+time.Second-1)/time.Second)))
				}
				a.Header.Set("X-RateLimit-Limit", fmt.Sprint(d.Limit))
				a.Header.Set("X-RateLimit-Remaining", fmt.Sprint(int(d.Remaining)+left))
				a.Header.Set("RateLimit", fmt.Sprintf(`"a";r=%d;t=9`, d.Remaining))
			}
		}
	}
	policy := engine.TokenBucket(engine.Per(30, time.Minute), 8)
	wrong := func(r *Report) (all []string) {
		for _, f := range r.Fields {
			assert.Positive(t, f.Answers)
			if f.Wrong > 0 {
				all = append(all, f.Name)
			}
		}
		return all
	}
	assert.Empty(t, wrong(audited(t, policy, said(0, 0))))
	assert.Equal(t, []string{"Retry-After"}, wrong(audited(t, policy, said(-1500*time.Millisecond, 0))))
	if testing.Short() {
		return
	}
	assert.Equal(t, []string{"Retry-After"}, wrong(audited(t, policy, said(3*time.Second, 0))))
	assert.Equal(t, []string{"X-RateLimit-Remaining"}, wrong(audited(t, policy, said(0, 4))))
}

// TestFieldsOfAHeldRequest: a request may be delayed on its way to the server. For the fields of later answers, it
// counts from its decision, not from its sending.
func TestFieldsOfAHeldRequest(t *testing.T) {
	begin := time.Unix(1000, 0)
	seen := func(sent, done time.Duration, allowed bool, wait string) Exchange {
		return Exchange{Answer{Sent: begin.Add(sent), Done: begin.Add(done), Header: http.Header{"Retry-After": {wait}}}, allowed}
	}
	log := []Exchange{
		seen(0, 2500*time.Millisecond, true, ""),
		seen(2600*time.Millisecond, 2601*time.Millisecond, true, ""),
		seen(2700*time.Millisecond, 2701*time.Millisecond, false, "3"), // the first request was decided at 2.4 s
		seen(2800*time.Millisecond, 2801*time.Millisecond, false, "3"),
	}
	found := fit.Result{Tolerance: time.Millisecond,
		Limit: fit.Limit{Kind: check.SlidingExact, Limit: check.Limit{Tokens: 2, Per: 3 * time.Second, Burst: 1}}}
	fields := checkFields(log, found)
	require.Len(t, fields, 1)
	assert.Equal(t, Field{Name: "Retry-After", Example: "3", Answers: 2}, fields[0])
	log[2].Header, log[3].Header = http.Header{"Retry-After": {"9"}}, http.Header{"Retry-After": {"9"}}
	assert.Equal(t, 2, checkFields(log, found)[0].Wrong)
}

// TestTheRulesAreTheSameLimit: the report has rules for weir serve. With these rules, weir serve has the audited limit.
// TestServers audits a real weir serve.
func TestTheRulesAreTheSameLimit(t *testing.T) {
	policies := []engine.Policy{
		engine.SlidingLog(15, 3*time.Second), engine.BatchRefill(4, 2*time.Second, 12), engine.FixedWindow(15, 3*time.Second).Aligned(),
	}
	if testing.Short() {
		policies = policies[:1]
	}
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) {
			first := audited(t, p, func(*simulated) {})
			file, err := rulefile.Parse("audited.yaml", []byte(first.Rules))
			require.NoError(t, err, first.Rules)
			of := file.Rules[0].Policies()[0]
			assert.Equal(t, p.String(), of.String(), first.Rules)
		})
	}
}

// TestAnAuditIsNoAttack: an audit keeps its bound on requests, and stops when the server fails or is silent.
func TestAnAuditIsNoAttack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		for name, c := range map[string]struct {
			answer func(n int64) (int, error)
			most   int64
			says   string
		}{
			"no limit":    {func(int64) (int, error) { return 200, nil }, 200, ""},
			"errors":      {func(n int64) (int, error) { return map[bool]int{true: 200, false: 500}[n < 20], nil }, 20 + maxConcurrent, "the server answered 500"},
			"gone":        {func(n int64) (int, error) { return 200, map[bool]error{false: errors.New("gone")}[n < 20] }, 20 + maxConcurrent, "gone"},
			"first error": {func(int64) (int, error) { return 502, nil }, 1, "the server answered 502"},
			"used up":     {func(int64) (int, error) { return 429, nil }, 1, "the server refuses the first request already, with 429"},
		} {
			sent.Store(0)
			client := clientFunc(func(Request) (Answer, error) {
				time.Sleep(time.Millisecond)
				status, err := c.answer(sent.Add(1))
				return Answer{Status: status, Header: http.Header{}, Sent: time.Now(), Done: time.Now()}, err
			})
			r, err := Run(t.Context(), client, plain, target, Options{Requests: 200, Time: time.Minute})
			assert.LessOrEqual(t, sent.Load(), c.most, name)
			if c.says == "" {
				require.NoError(t, err)
				assert.Empty(t, r.Kind, name)
				assert.Zero(t, r.Faults, name)
			} else { // in this case, the error must not say that there is no limit
				assert.ErrorContains(t, err, c.says, name)
			}
		}
	})
}

// TestOtherAnswersAreShown: the report shows answers that are neither 2xx nor refusals, because the path may be wrong.
func TestOtherAnswersAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		client := clientFunc(func(Request) (Answer, error) {
			time.Sleep(time.Millisecond)
			status := map[bool]int{true: 200, false: 302}[sent.Add(1) <= 10]
			return Answer{Status: status, Header: http.Header{}, Sent: time.Now(), Done: time.Now()}, nil
		})
		r, err := Run(t.Context(), client, plain, target, Options{Requests: 100, Time: time.Minute})
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		assert.Contains(t, text.String(), "admitted requests have status 302; if that is a refusal: --refused 302")
		assert.Equal(t, 1, r.Faults)
	})
}

// TestALogInAnyOrder: a shuffled log gives the same result, even if it is too long to be sorted in memory.
func TestALogInAnyOrder(t *testing.T) {
	lines := make([]string, 20_000)
	for i := range lines {
		at := time.Date(2026, 3, 1, 12, 0, 2*i, 0, time.UTC)
		lines[i] = fmt.Sprintf("192.0.2.1 - - [%s] \"GET / HTTP/1.1\" %d 10 \"-\" \"-\"\n", at.Format("02/Jan/2006:15:04:05 -0700"),
			map[bool]int{true: 200, false: 429}[i%30 < 10])
	}
	read := func() []fit.Request {
		log := accesslog.NewLog(strings.NewReader(strings.Join(lines, "")))
		defer log.Close()
		clients, _, err := readLog(log, refusals[:1])
		require.NoError(t, err)
		require.Len(t, clients, 1)
		return clients[0].requests
	}
	sorted := read()
	assert.Len(t, sorted, len(lines))
	rand.New(rand.NewPCG(35, 8)).Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	assert.Equal(t, sorted, read())
}

type clientFunc func(Request) (Answer, error)

func (f clientFunc) Do(_ context.Context, ask Request) (Answer, error) { return f(ask) }

// TestWhoseServer: only servers on this machine and in private networks are audited, unless an option permits others.
func TestWhoseServer(t *testing.T) {
	for text, says := range map[string]string{
		"http://127.0.0.1:1/": "", "http://[::1]/x": "", "https://10.1.2.3/": "", "http://192.168.1.1": "",
		"http://192.0.2.1/": "--i-run-this-server", "http://8.8.8.8": "--i-run-this-server", "ftp://127.0.0.1/": "want http://",
		"127.0.0.1:80": "", "http://127.0.0.1:99999/": "invalid port",
	} {
		_, err := Resolve(t.Context(), text, false)
		if says == "" && text != "127.0.0.1:80" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, says, text)
		}
	}
	_, err := Resolve(t.Context(), "http://192.0.2.1/", true)
	assert.NoError(t, err)
}

// TestRequestsAreSentAsTheyAreAsked: requests reach a socket exactly as the audit makes them, with the audit's
// User-Agent.
func TestRequestsAreSentAsTheyAreAsked(t *testing.T) {
	var seen atomic.Pointer[http.Request]
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r)
		w.WriteHeader(http.StatusTooManyRequests)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	to, err := Resolve(t.Context(), "http://"+l.Addr().String()+"/", false)
	require.NoError(t, err)
	client, closeAll := NewClient(to)
	defer closeAll()
	for range 2 { // the second request uses the same connection
		a, err := client.Do(t.Context(), Request{Method: "GET", Target: "//a;b%2F", Host: "Example", Fields: [][2]string{{"X-A", "b"}}, Times: 3})
		require.NoError(t, err)
		assert.Equal(t, http.StatusTooManyRequests, a.Status)
		assert.Equal(t, 3, a.Refused)
		assert.Equal(t, "//a;b%2F", seen.Load().RequestURI)
		assert.Equal(t, "Example", seen.Load().Host)
		assert.Equal(t, "b", seen.Load().Header.Get("X-A"))
		assert.Contains(t, seen.Load().UserAgent(), "weir-audit")
	}
}

// TestErrorsNameTheURL: over HTTP/1 and HTTP/2, the error names the URL if an answer is invalid or late, or the server
// cannot be reached.
func TestErrorsNameTheURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(c).ReadString('\n')
			_, _ = io.WriteString(c, "HTTP/1.1 9 none\r\n\r\n")
			_ = c.Close()
		}
	})
	at := "http://" + l.Addr().String() + "/login?a=b"
	to, err := Resolve(t.Context(), at, false)
	require.NoError(t, err)
	client, closeAll := NewClient(to)
	defer closeAll()
	fails := func(ctx context.Context, proto, says string) {
		t.Helper()
		_, err := client.Do(ctx, Request{Method: "GET", Target: "/login?a=b", Proto: proto})
		require.ErrorContains(t, err, says)
		assert.True(t, strings.HasPrefix(err.Error(), "GET "+at+": "), err)
		assert.Equal(t, 1, strings.Count(err.Error(), at), err)
	}
	fails(t.Context(), "", "malformed HTTP status code")
	fails(t.Context(), http2, "")
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	fails(late, "", "timeout")
	require.NoError(t, l.Close())
	served.Wait()
	fails(t.Context(), "", "refused")
	fails(t.Context(), http2, "refused")
}

// TestALogIsFitted: the fit finds the limit behind an access log whose times are whole seconds.
func TestALogIsFitted(t *testing.T) {
	if testing.Short() {
		t.Skip("ten seconds of arithmetic, of which the tests of package fit have a part")
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	limiter, err := engine.New(engine.FixedWindow(20, time.Minute), engine.MaxKeys(100), engine.ClockFunc(func() time.Time { return at }))
	require.NoError(t, err)
	defer limiter.Close()
	var text strings.Builder
	for i := range 2000 {
		at = at.Add(time.Duration(i*i%7) * 300 * time.Millisecond)
		client := fmt.Sprintf("192.0.2.%d", i%2)
		status := 200
		if !limiter.Take(client, 1).Allowed {
			status = 429
		}
		fmt.Fprintf(&text, "%s - - [%s] \"GET / HTTP/1.1\" %d 10 \"-\" \"-\"\n", client, at.Format("02/Jan/2006:15:04:05 -0700"), status)
	}
	r, err := FromLog(accesslog.NewLog(strings.NewReader(text.String())), nil)
	require.NoError(t, err)
	assert.Equal(t, "fixed window", r.Kind, "%+v", r)
	assert.Equal(t, "1m", r.Per)
	assert.InDelta(t, 20, r.Tokens, 1)
	var out strings.Builder
	require.NoError(t, r.WriteJSON(&out))
	assert.True(t, json.Valid([]byte(out.String())))
}

// TestALogWithoutRefusals: the error names the statuses that may be refusals.
func TestALogWithoutRefusals(t *testing.T) {
	line := `192.0.2.1 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" `
	_, err := FromLog(accesslog.NewLog(strings.NewReader(line+"200 1\n"+line+"503 1\n"+line+"503 1\n"+line+"404 1\n")), nil)
	assert.EqualError(t, err, "no request of 4 was refused with 429: 2 x 503, 1 x 404; if 503 is a refusal: --refused 503")
	_, err = FromLog(accesslog.NewLog(strings.NewReader(line+"200 1\n")), nil)
	assert.EqualError(t, err, "no request of 1 was refused with 429")
}
