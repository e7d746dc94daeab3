package serve

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

func newUpstream(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	upstream := httptest.NewServer(serve)
	t.Cleanup(upstream.Close)
	return upstream.URL
}

func (r *running) dial(text string) net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address())
	require.NoError(r.t, err)
	r.t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, text)
	require.NoError(r.t, err)
	return conn
}

func TestProxyPassesRequestAndAnswer(t *testing.T) {
	seen := make(chan *http.Request, 1)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.Header().Set("Content-Type", "text/x-test")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "from upstream")
	})
	s := start(t, "upstream: "+upstream+"/base\nclient_ip: {from: \"header:X-Real-IP\"}\ntrusted_proxies: 192.0.2.1\n"+one)
	got := s.get("/a?b=c", "X-Forwarded-For: 203.0.113.66", "X-Forwarded-Proto: https", "X-Real-IP: 203.0.113.66",
		"Forwarded: for=203.0.113.66", "X-Mine: yes")
	assert.Equal(t, answer{http.StatusTeapot, "7", "text/x-test", "from upstream"}, got)
	r := <-seen
	assert.Equal(t, "/base/a?b=c", r.URL.RequestURI())
	assert.Equal(t, strings.TrimPrefix(upstream, "http://"), r.Host)
	assert.Equal(t, "yes", r.Header.Get("X-Mine"))
	assert.Equal(t, "127.0.0.1", r.Header.Get("X-Forwarded-For"), "what a client claims is dropped")
	assert.Equal(t, "http", r.Header.Get("X-Forwarded-Proto"))
	assert.Equal(t, s.address(), r.Header.Get("X-Forwarded-Host"))
	assert.Equal(t, "127.0.0.1", r.Header.Get("X-Real-IP"), "the client as weir sees it")
	assert.Empty(t, r.Header.Get("Forwarded"))
}

func TestWhatATrustedProxyToldIsPassedOn(t *testing.T) {
	seen := make(chan *http.Request, 1)
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r })
	s := start(t, "upstream: {url: \""+upstream+"\", keep_host: true}\ntrusted_proxies: 127.0.0.1\n"+one)
	s.get("/", "Host: shop.example.com", "X-Forwarded-For: 203.0.113.66", "X-Forwarded-Proto: https",
		"X-Forwarded-Host: outside.example.com")
	r := <-seen
	assert.Equal(t, "203.0.113.66, 127.0.0.1", r.Header.Get("X-Forwarded-For"))
	assert.Equal(t, "https", r.Header.Get("X-Forwarded-Proto"))
	assert.Equal(t, "outside.example.com", r.Header.Get("X-Forwarded-Host"))
	assert.Equal(t, "shop.example.com", r.Host)
}

// TestTheUpstreamsLimitsDoNotMixWithOurs: the only fields about limits in an answer are those of weir. This also
// applies after an early hint.
func TestTheUpstreamsLimitsDoNotMixWithOurs(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("RateLimit", `"theirs";r=9;t=1`)
		w.Header().Set("X-RateLimit-Limit", "99")
	})
	s := start(t, "upstream: "+upstream+"\n"+rule("match: {path: /limited}"))
	_, h := s.ask("/limited")
	assert.Equal(t, []string{`"default";r=4;t=3600`}, h.Values("RateLimit"))
	assert.Len(t, h.Values("RateLimit-Policy"), 1)
	assert.Equal(t, "99", h.Get("X-RateLimit-Limit"), "a style that is not ours here")
	_, h = s.ask("/")
	assert.Equal(t, []string{`"theirs";r=9;t=1`}, h.Values("RateLimit"), "no rule is for this")
}

// TestInformationalAnswersPass: informational answers (1xx) pass unchanged. Only the final answer has the fields of
// weir.
func TestInformationalAnswersPass(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, link := range []string{"</a.css>; rel=preload", "</b.css>; rel=preload"} {
			w.Header().Set("Link", link)
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Del("Link")
	})
	s := start(t, "upstream: "+upstream+"\n"+one)
	var links []string
	traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
			links = append(links, header.Values("Link")...)
			assert.Empty(t, header.Values("RateLimit"))
			return nil
		},
	})
	request, err := http.NewRequestWithContext(traced, http.MethodGet, s.URL(), nil)
	require.NoError(t, err)
	answer, err := s.client.Do(request)
	require.NoError(t, err)
	answer.Body.Close()
	assert.Equal(t, []string{"</a.css>; rel=preload", "</b.css>; rel=preload"}, links)
	assert.Equal(t, []string{`"default";r=4;t=3600`}, answer.Header.Values("RateLimit"))
	assert.Empty(t, answer.Header.Values("Link"))
}

// TestTrailersDoNotMixWithOurs: if weir sets a field in the header, the field is removed from the upstream's trailer.
// It does not matter whether the trailer was announced.
func TestTrailersDoNotMixWithOurs(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "RateLimit, Checksum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("RateLimit", `"theirs";r=9;t=1`)
		w.Header().Set("Checksum", "1")
		w.Header().Set(http.TrailerPrefix+"RateLimit-Policy", `"theirs";q=9;w=1`)
		w.Header().Set(http.TrailerPrefix+"Late", "2")
	})
	s := start(t, "upstream: "+upstream+"\n"+rule("match: {path: /limited}"))
	trailer := func(path string) http.Header {
		answer, err := s.client.Get(s.URL() + path)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.Trailer
	}
	assert.Equal(t, http.Header{"Checksum": {"1"}, "Late": {"2"}}, trailer("limited"))
	assert.Len(t, trailer(""), 4, "no rule is for this")
}

func TestRoutes(t *testing.T) {
	named := func(name string) string {
		return newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	routes := "routes:\n  - {match: {path: /a/}, upstream: " + named("a") + "}\n" +
		"  - {match: {host: b.example.com}, upstream: " + named("b") + "}\n"
	s := start(t, routes+"rules: [{name: a, rate: 100/s, burst: 100}]")
	assert.Equal(t, "a", s.get("/a/x").body)
	assert.Equal(t, "b", s.get("/b", "Host: b.example.com").body)
	none := s.get("/")
	assert.Equal(t, 404, none.status)
	assert.Equal(t, `{"type":"about:blank","title":"Not Found","status":404,`+
		`"detail":"There is no upstream for this request"}`+"\n", none.body)
	s.change("upstream: " + named("rest") + "\n" + routes + "rules: [{name: a, rate: 100/s, burst: 100}]")
	assert.Equal(t, "rest", s.get("/").body)
}

func TestProxyDoesNotBotherTheUpstreamWithRefusals(t *testing.T) {
	calls := make(chan struct{}, 10)
	upstream := newUpstream(t, func(http.ResponseWriter, *http.Request) { calls <- struct{}{} })
	s := start(t, "upstream: "+upstream+"\n"+one)
	assert.Equal(t, "200 200 200 200 200 429 429", s.statuses(7))
	assert.Len(t, calls, 5)
}

func TestUpstreamDownIs502AndNotARefusal(t *testing.T) {
	s := start(t, "response: {body: json}\nupstream: http://"+freeport.Address(t)+"\n"+one)
	a, h := s.ask("/x")
	assert.Equal(t, answer{502, "", "application/json", `{"error":"The upstream server did not answer"}` + "\n"}, a)
	assert.NotEmpty(t, h.Get("RateLimit"), "what is left is told all the same")
	assert.Equal(t, "502 502 502 502 429", s.statuses(5))
	s.stop()
	assert.Contains(t, s.log.String(), `level=ERROR msg="upstream failed"`)
	assert.Contains(t, s.log.String(), "connection refused")
	assert.Contains(t, s.log.String(), "msg=stopped requests=6 allowed=5 refused=1 upstream_failures=5\n")
}

func TestUpstreamTooSlowIs504(t *testing.T) {
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := start(t, "upstream: {url: \""+upstream+"\", response_timeout: 20ms}\n"+one)
	a := s.get("/")
	assert.Equal(t, 504, a.status)
	assert.Contains(t, a.body, "did not answer in time")
	s.stop()
	assert.Contains(t, s.log.String(), "upstream_failures=1\n")
}

func TestUpstreamBreakingOffIsAFailure(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	s := start(t, "upstream: "+upstream+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	// The header may have arrived, because of buffers. The complete answer must not have arrived.
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
	}
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "the client must notice")
	s.stop()
	assert.Contains(t, s.log.String(), "requests=1 allowed=1 refused=0 upstream_failures=1\n")
}

func TestAClientThatLeavesIsNoUpstreamFailure(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done() // weir has given up the request
		close(left)
	})
	s := start(t, "upstream: "+upstream+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-entered
	require.NoError(t, conn.Close())
	<-left
	s.stop()
	assert.Contains(t, s.log.String(), "requests=1 allowed=1 refused=0 upstream_failures=0\n")
	assert.NotContains(t, s.log.String(), "upstream failed")
}

func TestHalfABodyIsTheClientsFault(t *testing.T) {
	upstream := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	s := start(t, "upstream: "+upstream+"\n"+one)
	status := func(leave bool) int {
		conn := s.dial("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
		if leave {
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		return resp.StatusCode
	}
	assert.Equal(t, 400, status(true))
	// On a busy machine, the header must also arrive within this timeout.
	s.change("server: {read_timeout: 1s}\nupstream: " + upstream + "\n" + one)
	assert.Equal(t, 408, status(false))
	s.stop()
	assert.Contains(t, s.log.String(), "upstream_failures=0\n")
	assert.NotContains(t, s.log.String(), "upstream failed")
}

func TestAGoodAnswerGivesTheTokenBack(t *testing.T) {
	status := make(chan int, 9)
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(<-status) })
	s := start(t, "upstream: "+upstream+"\nrules: [{name: a, rate: 1/h, burst: 1, refund_status: 2xx}]")
	for _, code := range []int{200, 204, 200, 403} {
		status <- code
		assert.Equal(t, code, s.get("/").status)
	}
	assert.Equal(t, "429", s.statuses(1))
}

// TestALeavingClientGetsNothingBack: a client that disconnects before or during the answer gets no tokens back.
func TestALeavingClientGetsNothingBack(t *testing.T) {
	for _, half := range []bool{false, true} {
		entered := make(chan struct{})
		upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			if half {
				http.NewResponseController(w).Flush()
			}
			close(entered)
			<-r.Context().Done()
		})
		s := start(t, "log: {access: all}\nupstream: "+upstream+
			"\nrules: [{name: a, rate: 1/h, burst: 1, refund_status: [2xx, 4xx, 5xx]}]")
		conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		<-entered
		if half {
			_, err := bufio.NewReader(conn).ReadString('\n')
			require.NoError(t, err)
		}
		require.NoError(t, conn.Close())
		s.waitFor("msg=request")
		if !half {
			assert.Contains(t, s.log.String(), "status=0 ", "aborted")
		}
		assert.Equal(t, "429", s.statuses(1))
	}
}

// TestWeirsOwnAnswersGiveNothingBack: if weir itself answers a request, the client gets no tokens back.
func TestWeirsOwnAnswersGiveNothingBack(t *testing.T) {
	s := start(t, "upstream: http://"+freeport.Address(t)+
		"\nrules: [{name: a, rate: 1/h, burst: 1, refund_status: 5xx}]")
	assert.Equal(t, "502 429", s.statuses(2))
}

func upgradeUpstream(w http.ResponseWriter, _ *http.Request) {
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n")
	for {
		_ = both.Flush()
		word, err := both.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = both.WriteString(word)
	}
}

func TestAnUpgradedConnectionPassesAndEndsWithTheServer(t *testing.T) {
	s := start(t, "upstream: "+newUpstream(t, upgradeUpstream)+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	assert.NotEmpty(t, resp.Header.Get("RateLimit"))
	for range 2 {
		_, err = io.WriteString(conn, "hello\n")
		require.NoError(t, err)
		word, err := in.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "hello\n", word)
		s.change("headers: both\n" + one) // while the connection is open
	}
	s.stop()
	_, err = in.ReadString('\n')
	assert.Error(t, err)
}

func TestEventsAreNotHeldBack(t *testing.T) {
	next := make(chan string)
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for event := range next {
			_, _ = io.WriteString(w, event)
			http.NewResponseController(w).Flush()
		}
	})
	s := start(t, "upstream: "+upstream+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	next <- "data: 1\n"
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	in := bufio.NewReader(resp.Body)
	for _, event := range []string{"data: 1\n", "data: 2\n", "data: 3\n"} {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, event, line)
		if event != "data: 3\n" {
			next <- "data: " + string(event[6]+1) + "\n"
		}
	}
	close(next)
}

// TestEventsOfAKnownLengthAreNotHeldBack: ReverseProxy recognizes an event stream by the upstream's Content-Type. So
// weir must not remove this field before that. The client gets each field once.
func TestEventsOfAKnownLengthAreNotHeldBack(t *testing.T) {
	next := make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"Text/Event-Stream; charset=utf-8"}
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "data:")
		http.NewResponseController(w).Flush()
		<-next
		_, _ = io.WriteString(w, "data:")
	})
	s := start(t, "upstream: "+upstream+"\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, make([]byte, 5))
	require.NoError(t, err)
	close(next)
	assert.Equal(t, []string{"Text/Event-Stream; charset=utf-8"}, resp.Header["Content-Type"])
	assert.Equal(t, []string{"a=1", "b=2"}, resp.Header["Set-Cookie"])
	assert.EqualValues(t, 10, resp.ContentLength)
	assert.Len(t, resp.Header["Ratelimit"], 1)
}

// TestTheQueryIsPassedOnAsTheRulesSawIt: ReverseProxy alone would remove pairs of the query that it cannot parse. The
// rules would then decide by a query that the upstream does not get.
func TestTheQueryIsPassedOnAsTheRulesSawIt(t *testing.T) {
	got := make(chan string, 1)
	s := start(t, "upstream: "+newUpstream(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.RawQuery })+`
rules: [{name: a, rate: 1/h, burst: 100, match: {query: {admin: "1"}}}]`)
	for _, query := range []string{"", "b=1&a=2", "admin=1;x=2", "x;admin=1", "a=%zz&admin=1", "a=%3B&&b", "%", "a=+b;"} {
		answered, header := s.ask("/?" + query)
		require.Equal(t, 200, answered.status)
		assert.Equal(t, query, <-got)
		assert.Equal(t, strings.Contains(query, "admin=1"), header.Get("RateLimit") != "", query)
	}
}
