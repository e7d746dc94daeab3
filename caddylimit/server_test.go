package caddylimit_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
	_ "github.com/caddyserver/caddy/v2/modules/metrics"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/weir-go/weir/caddylimit"
	_ "github.com/weir-go/weir/caddylimit/compat"
	"github.com/weir-go/weir/caddylimit/internal/testprogram"
	"github.com/weir-go/weir/internal/freeport"
)

// A server is a Caddy in this process. Only one can run at a time.
type server struct {
	t    *testing.T
	port string
	log  string // path of the log file
}

func newServer(t *testing.T) *server {
	s := &server{t: t, port: strconv.Itoa(freeport.Number(t)), log: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(func() { require.NoError(t, caddy.Stop()) })
	return s
}

// load loads a Caddyfile of one site with these directives.
func (s *server) load(directives string, global ...string) error {
	s.t.Helper()
	text := "{\nadmin off\nauto_https off\npersist_config off\nlog {\noutput file " + s.log + "\n}\n" + strings.Join(global, "\n") + "\n}\n" +
		"http://127.0.0.1:" + s.port + " {\n" + directives + "\n}\n"
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err != nil {
		return err
	}
	return caddy.Load(config, true)
}

// get makes a request from an address of this machine, 127.0.0.x.
func (s *server) get(from, path string, header ...string) (status int, body string, fields http.Header) {
	s.t.Helper()
	status, body, fields, err := s.try(from, path, header...)
	for again := 0; again < 5 && testprogram.IsClosed(err); again++ {
		status, body, fields, err = s.try(from, path, header...)
	}
	require.NoError(s.t, err)
	return status, body, fields
}

// try is get with an error if the request fails.
func (s *server) try(from, path string, header ...string) (status int, body string, fields http.Header, err error) {
	r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+s.port+path, nil)
	if err != nil {
		return 0, "", nil, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), answer.Header, err
}

func (s *server) passed(n int, from string, header ...string) (passed int) {
	for range n {
		if status, _, _ := s.get(from, "/", header...); status == http.StatusOK {
			passed++
		}
	}
	return passed
}

// TestDirectivesInCaddy: both directives run in a real Caddy. Refusals reach handle_errors, and placeholders, log and
// metrics are right. A change of the configuration keeps the counts.
func TestDirectivesInCaddy(t *testing.T) {
	s := newServer(t)
	const site = `
		rate_limit {
			zone by_address {
				match {
					path /old/*
				}
				key {remote_host}
				window 1h
				events 2
			}
			log_key
		}
		weir {
			limit clients {
				match {
					not path /metrics /old/*
				}
				rate 3/h
			}
			headers ietf legacy
		}
		handle /metrics {
			metrics
		}
		handle {
			respond "hello"
		}
		handle_errors {
			respond "sorry: {err.status_code} {http.rate_limit.exceeded.name} {http.weir.limit}" {err.status_code}
		}`
	require.NoError(t, s.load(site))
	status, body, fields := s.get("127.0.0.1", "/")
	assert.Equal(t, 200, status)
	assert.Equal(t, "hello", body)
	assert.Equal(t, `"clients";r=2;t=1200`, fields.Get("RateLimit"))
	assert.Equal(t, `"clients";q=3;w=3600`, fields.Get("RateLimit-Policy"))
	assert.Equal(t, "2", fields.Get("X-RateLimit-Remaining"))
	assert.Equal(t, 2, s.passed(5, "127.0.0.1"))
	status, body, fields = s.get("127.0.0.1", "/")
	assert.Equal(t, 429, status)
	assert.Equal(t, "sorry: 429 {http.rate_limit.exceeded.name} clients", body)
	assert.Regexp(t, `^1(200|19\d)$`, fields.Get("Retry-After"))
	assert.Equal(t, 3, s.passed(5, "127.0.0.2"), "another client")

	for range 2 {
		status, _, _ = s.get("127.0.0.1", "/old/a")
		assert.Equal(t, 200, status)
	}
	status, body, fields = s.get("127.0.0.1", "/old/b")
	assert.Equal(t, 429, status)
	assert.Equal(t, "sorry: 429 by_address {http.weir.limit}", body)
	assert.Regexp(t, `^3(600|59\d)$`, fields.Get("Retry-After"))
	assert.Empty(t, fields.Get("RateLimit"))

	log, err := os.ReadFile(s.log)
	require.NoError(t, err)
	assert.Contains(t, string(log), `"msg":"rate limit exceeded","limit":"clients"`)
	assert.Regexp(t, `"msg":"rate limit exceeded","zone":"by_address","wait":3\d+\.\d+,"remote_ip":"127.0.0.1","key":"127.0.0.1"`, string(log))

	for _, want := range []string{
		`caddy_rate_limit_requests_total{zone="by_address"} 3`, `caddy_rate_limit_declined_requests_total{zone="by_address"} 1`,
		`caddy_rate_limit_config{ipv4_prefix="0",ipv6_prefix="0",max_events="2",window="1h0m0s",zone="by_address"} 1`,
		`caddy_rate_limit_process_time_seconds_count{zone="by_address"} 3`, `caddy_rate_limit_keys_total{zone="by_address"}`,
		`caddy_weir_requests_total{limit="clients",outcome="allowed"} 6`, `caddy_weir_requests_total{limit="clients",outcome="refused"} 6`,
		`caddy_weir_keys{limit="clients"}`, `caddy_weir_evicted_keys_total{limit="clients"} 0`,
	} {
		_, body, _ = s.get("127.0.0.1", "/metrics")
		assert.Contains(t, body, want)
	}

	require.NoError(t, s.load(site+"\nheader X-New yes"))
	assert.Equal(t, 0, s.passed(3, "127.0.0.1"))
	require.NoError(t, s.load(strings.ReplaceAll(site, "events 2", "events 200")))
	for i := range 199 {
		status, _, _ = s.get("127.0.0.1", "/old/b")
		if i < 198 { // 2 of the 200 are used already
			require.Equal(t, 200, status, i)
		}
	}
	assert.Equal(t, 429, status)
	_, body, _ = s.get("127.0.0.1", "/metrics")
	assert.Contains(t, body, `caddy_rate_limit_requests_total{zone="by_address"} 202`, "counters go on")
	assert.Contains(t, body, `caddy_rate_limit_process_time_seconds_count{zone="by_address"} 202`, "histograms go on")
}

// TestCostsThatAServerSays: the server behind Caddy reports a cost in a header or a trailer, or a directive of the site
// sets the header.
func TestCostsThatAServerSays(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/header":
			w.Header().Set("X-Tokens", "1")
		case "/trailer":
			w.Header().Set("Trailer", "X-Tokens")
			_, _ = io.WriteString(w, "data: a")
			_ = http.NewResponseController(w).Flush()
			w.Header().Set("X-Tokens", "1")
		case "/broken":
			_, _ = io.WriteString(w, "data: a")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	defer upstream.Close()
	s := newServer(t)
	require.NoError(t, s.load(`
		weir {
			limit tokens {
				key {path}
				rate 10/h
				cost 5
				settle {http.response.header.X-Tokens}
			}
		}
		header /site X-Tokens 1
		respond /site "ok"
		reverse_proxy `+strings.TrimPrefix(upstream.URL, "http://")))
	for path, want := range map[string]int{"/header": 6, "/trailer": 6, "/site": 6, "/none": 2, "/broken": 2} {
		admitted := 0
		for range 8 {
			status, _, _, err := s.try("127.0.0.1", path)
			assert.Equal(t, path == "/broken" && status != 429, err != nil, "%s: %v", path, err)
			if status != 429 {
				admitted++
			}
		}
		assert.Equal(t, want, admitted, path)
	}
}

// TestALimitOfAClientDoesNotPass: Caddy removes a client's limit in a header field, because a weir behind Caddy would
// trust the field. A trusted proxy's field passes in the one spelling that Caddy reads. The same is true for requests
// without the limit and for handle_errors.
func TestALimitOfAClientDoesNotPass(t *testing.T) {
	seen := make(chan http.Header, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range r.Trailer {
			r.Header["Trailer "+name] = values
		}
		seen <- r.Header
	}))
	defer upstream.Close()
	s := newServer(t)
	to := "reverse_proxy " + strings.TrimPrefix(upstream.URL, "http://")
	require.NoError(t, s.load(`
		weir {
			limit passing {
				match {
					not path /elsewhere /zero
				}
				rate 1000/h
				quotas {
					header x-ratelimit-policy
				}
			}
			limit refusing {
				match {
					path /zero
				}
				rate 0
			}
		}
		handle_errors {
			`+to+`
		}
		`+to, "servers {\ntrusted_proxies static 127.0.0.2/32\n}"))
	fields := "X-RateLimit-Policy: \"passing\";q=9\r\nX_RateLimit_Policy: a\r\nx-ratelimit.policy: a\r\nX-RateLimit-Policy2: a\r\n"
	for _, path := range []string{"/", "/elsewhere", "/zero"} {
		for from, want := range map[string][]string{
			"127.0.0.1": {"X-Ratelimit-Policy2"}, "127.0.0.2": {"X-Ratelimit-Policy", "X-Ratelimit-Policy2"},
		} {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			conn, err := dialer.Dial("tcp", "127.0.0.1:"+s.port)
			require.NoError(t, err)
			_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: 127.0.0.1:"+s.port+"\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"+
				"Trailer: X-RateLimit-Policy2\r\n"+fields+"\r\n1\r\na\r\n0\r\n"+fields+"\r\n")
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, conn)
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			require.Len(t, seen, 1)
			var got []string
			for name := range <-seen {
				if strings.Contains(strings.ToLower(name), "limit") {
					got = append(got, name)
				}
			}
			for _, name := range want {
				want = append(want, "Trailer "+name)
			}
			assert.ElementsMatch(t, want, got, "%s from %s", path, from)
		}
	}
}

// TestAQuotaThatAClientWrites: a quota from a field that a client can write gives a warning, because its writer is
// unknown. A quota of the server gives no warning.
func TestAQuotaThatAClientWrites(t *testing.T) {
	s := newServer(t)
	require.NoError(t, s.load("respond ok"))
	for placeholder, warned := range map[string]bool{
		"{header.X-Quota}": true, "{query.quota}": true, "{cookie.quota}": true, "{path.0}": true, "{re.a.1}": true, "{http.vars.quota}": false, "{http.auth.user.quota}": false,
	} {
		log, err := os.ReadFile(s.log)
		require.NoError(t, err)
		require.NoError(t, s.load("weir {\nlimit a {\nrate 5/h\nquota "+placeholder+"\n}\n}\nrespond ok"))
		more, err := os.ReadFile(s.log)
		require.NoError(t, err)
		assert.Equal(t, warned, strings.Contains(string(more[len(log):]), "a client can write its own limit"), placeholder)
	}
}

// TestTheExampleOfTheOriginal: the original's Caddyfile with all options works, with a warning that machines do not
// share the zones.
func TestTheExampleOfTheOriginal(t *testing.T) {
	s := newServer(t)
	require.NoError(t, s.load(`rate_limit {
			distributed {
				read_interval  5s
				write_interval 5s
				purge_age 1m
			}
			zone static_example {
				match {
					method GET
				}
				key    static
				events 100
				window 1m
			}
			zone dynamic_example {
				key    {remote_host}
				events 2
				window 1h
				ipv4_prefix 32
				ipv6_prefix 64
			}
			storage file_system {
				root /tmp/none
			}
			log_key
			jitter 0.2
			sweep_interval 1m
		}
		respond "I'm behind the rate limiter!"`))
	assert.Equal(t, 2, s.passed(5, "127.0.0.1"))
	log, err := os.ReadFile(s.log)
	require.NoError(t, err)
	assert.Contains(t, string(log), "each machine counts separately")
	require.NoError(t, s.load("rate_limit {\ndistributed\nzone other {\nkey static\nwindow 1h\nevents 1\n}\n}\nrespond ok"))
	assert.Equal(t, 1, s.passed(3, "127.0.0.1"))
}

// TestAFailedLoadChangesNothing: a load that is refused or cannot start changes nothing.
func TestAFailedLoadChangesNothing(t *testing.T) {
	s := newServer(t)
	const site = "rate_limit {\nzone failing {\nkey static\nwindow 1h\nevents %\n}\n}\nrespond ok\n"
	of := func(events string) string { return strings.ReplaceAll(site, "%", events) }
	require.NoError(t, s.load(of("3")))
	require.Equal(t, 1, s.passed(1, "127.0.0.1"))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, events := range []string{"1", "1000", "5000"} {
		err := s.load(of(events) + "}\nhttp://" + taken.Addr().String() + " {\nrespond other")
		require.ErrorContains(t, err, "address already in use")
	}
	require.Error(t, s.load(of("1")+"\nweir {\nlimit a {\nrate 1\n}\n}"))
	assert.Equal(t, 2, s.passed(5, "127.0.0.1"))
}

// TestTwoSitesWithDifferentNumbers: two sites that share a zone must give it the same numbers.
func TestTwoSitesWithDifferentNumbers(t *testing.T) {
	s := newServer(t)
	site := "weir {\nlimit both {\nkey static\nrate 3/h\n}\n}\nrespond ok\n"
	other := "}\nhttp://127.0.0.2:" + s.port + " {\n"
	require.NoError(t, s.load(site+other+site))
	require.ErrorContains(t, s.load(site+other+strings.ReplaceAll(site, "3/h", "4/h")), "in another handler of this configuration")
	assert.Equal(t, 3, s.passed(5, "127.0.0.1"))
}

type listener struct{}

var (
	heard   []map[string]any
	hearing sync.Mutex
)

func init() { caddy.RegisterModule(listener{}) }

func (listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.weir_test", New: func() caddy.Module { return new(listener) }}
}

func (listener) Handle(_ context.Context, event caddy.Event) error {
	hearing.Lock()
	defer hearing.Unlock()
	heard = append(heard, event.Data)
	return nil
}

// TestEventsOfRefusals: the directive emits the same events as the original.
func TestEventsOfRefusals(t *testing.T) {
	hearing.Lock()
	heard = nil
	hearing.Unlock()
	s := newServer(t)
	config := `{"admin":{"disabled":true,"config":{"persist":false}},"logging":{"logs":{"default":{"writer":{"output":"discard"}}}},"apps":{
		"events":{"subscriptions":[{"events":["rate_limit_exceeded"],"handlers":[{"handler":"weir_test"}]}]},
		"http":{"servers":{"s":{"listen":["127.0.0.1:` + s.port + `"],"routes":[{"handle":[
			{"handler":"rate_limit","rate_limits":{"events":{"match":[{"method":["GET"]}],"key":"{http.request.remote.host}","window":"1h","max_events":1,"ipv4_prefix":0,"ipv6_prefix":0}},
			 "jitter":0.0,"sweep_interval":"1m","log_key":false,"disable_metrics":true},
			{"handler":"static_response","body":"ok"}]}]}}}}}`
	require.True(t, json.Valid([]byte(config)))
	require.NoError(t, caddy.Load([]byte(config), true))
	require.Equal(t, 1, s.passed(2, "127.0.0.1"))
	hearing.Lock()
	defer hearing.Unlock()
	require.Len(t, heard, 1)
	assert.Equal(t, "events", heard[0]["zone"])
	assert.Equal(t, "127.0.0.1", heard[0]["remote_ip"])
	assert.Contains(t, heard[0], "wait")
}

// TestRequestsDuringLoads: no change of the configuration during requests gives a client a full bucket.
func TestRequestsDuringLoads(t *testing.T) {
	s := newServer(t)
	site := func(events string) string {
		return "rate_limit {\nzone loads {\nkey static\nwindow 1h\nevents " + events + "\n}\n}\nrespond ok"
	}
	require.NoError(t, s.load(site("60")))
	stop, passed, asked := make(chan struct{}), make(chan int), make(chan struct{})
	for range 4 {
		go func() {
			n := 0
			for {
				if status, _, _, err := s.try("127.0.0.1", "/"); err == nil && status == http.StatusOK {
					n++
				}
				select {
				case <-stop:
					passed <- n
					return
				case asked <- struct{}{}:
				default:
				}
			}
		}()
	}
	// Some changes keep the limiter. Other changes make a new table, and the counts move to the new table.
	changes := []string{"50", "60", "60\nmax_keys 7", "60\nmax_keys 8", "50\nmax_keys 8", "60\nmax_keys 9"}
	for _, events := range changes {
		<-asked // at least one request between any two loads
		assert.NoError(t, s.load(site(events)))
	}
	close(stop)
	total := 0
	for range 4 {
		total += <-passed
	}
	total += s.passed(100, "127.0.0.1")
	assert.LessOrEqual(t, total, 60+4*len(changes), "a client's request at the moment of a load may pass by the old table")
	assert.GreaterOrEqual(t, total, 30, "each load may lose an answer of each client")
}
