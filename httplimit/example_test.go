package httplimit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// stopped is a clock that stands still, so that the output of the examples is always the same. A program needs no such
// option: the default is the system's clock.
var stopped = engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })

// Each client address may send one request per second, with a burst of five.
func Example() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 5), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limits, err := httplimit.New([]httplimit.Limit{{Name: "default", Limiter: limiter}})
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello\n") })
	server := httptest.NewServer(limits.Handler(mux))
	defer server.Close()

	for range 7 {
		resp, err := http.Get(server.URL)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Printf("%d Retry-After:%q\n", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	// Output:
	// 200 Retry-After:""
	// 200 Retry-After:""
	// 200 Retry-After:""
	// 200 Retry-After:""
	// 200 Retry-After:""
	// 429 Retry-After:"1"
	// 429 Retry-After:"1"
}

// A reverse proxy limits logins to the server behind it. Only logins that fail count.
func Example_reverseProxy() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") != "right" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer backend.Close()
	limiter, err := engine.New(engine.SlidingWindow(2, time.Hour), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limits, err := httplimit.New([]httplimit.Limit{{
		Name: "logins", Limiter: limiter, Key: httplimit.RemoteIP, Refund: httplimit.RefundStatus(200, 299),
	}})
	if err != nil {
		panic(err)
	}

	target, err := url.Parse(backend.URL)
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded() // replaces what the client sent
		},
		// The server behind the proxy may also send headers of limits. Remove these, so that the client gets only the
		// proxy's.
		ModifyResponse: func(resp *http.Response) error {
			resp.Header.Del("RateLimit")
			resp.Header.Del("RateLimit-Policy")
			return nil
		},
	}
	front := httptest.NewServer(limits.Handler(proxy))
	defer front.Close()

	for _, password := range []string{"right", "right", "right", "wrong", "wrong", "right"} {
		resp, err := http.Get(front.URL + "/?password=" + password)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(password, resp.StatusCode)
	}
	// Output:
	// right 200
	// right 200
	// right 200
	// wrong 401
	// wrong 401
	// right 429
}

// A server that writes its own answers calls Decide, and then writes the answer to the request.
func ExampleMiddleware_Decide() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), stopped)
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limits, err := httplimit.New([]httplimit.Limit{{Name: "all", Limiter: limiter, Key: httplimit.Everyone}})
	if err != nil {
		panic(err)
	}
	for range 2 {
		r := httptest.NewRequest("GET", "/", nil)
		res := limits.Decide(r)
		check, _ := res.Tightest()
		fmt.Println(res.Status(), check.Name(), check.Outcome, check.Decision.Remaining, res.RetryAfter())
	}
	// Output:
	// 200 all allowed 0 0s
	// 429 all refused 0 1s
}

// A program limits the requests that it sends to each server. A request waits for its turn, but at most two seconds.
func ExampleMiddleware_RoundTripper() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer api.Close()

	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 1))
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limits, err := httplimit.New([]httplimit.Limit{
		{Name: "api", Limiter: limiter, Key: httplimit.Host, MaxWait: 2 * time.Second},
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: limits.RoundTripper(nil)}
	defer client.CloseIdleConnections()

	for range 3 { // the second and the third request wait for a tenth of a second each
		response, err := client.Get(api.URL)
		var refused *httplimit.RefusedError
		if errors.As(err, &refused) {
			fmt.Println("again after", refused.RetryAfter)
			continue
		} else if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		fmt.Println(string(body))
	}
	// Output:
	// hello
	// hello
	// hello
}
