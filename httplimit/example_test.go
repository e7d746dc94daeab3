package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// stopped is a clock that stands still, so that the examples end the same every time. Without it
// a limiter uses the system's.
var stopped = engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })

// One request a second and five at once, for each client address.
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

// Behind a load balancer that writes X-Forwarded-For, and for two routes of a chi router: reading
// is limited by address, and writing by API key as well.
func Example_chi() {
	reads, err := engine.New(engine.TokenBucket(engine.PerSecond(10), 20), stopped)
	if err != nil {
		panic(err)
	}
	defer reads.Close()
	writes, err := engine.New(engine.FixedWindow(1, time.Minute), stopped)
	if err != nil {
		panic(err)
	}
	defer writes.Close()

	ip, err := httplimit.NewClientIP(httplimit.TrustProxies("192.0.2.0/24"))
	if err != nil {
		panic(err)
	}
	apiKey, err := httplimit.Header("X-API-Key", ip.Key)
	if err != nil {
		panic(err)
	}
	limits, err := httplimit.New([]httplimit.Limit{
		{Name: "clients", Limiter: reads, Key: ip.Key},
		{Name: "writes", Limiter: writes, Key: apiKey,
			Match: func(r *http.Request) bool { return r.Method == http.MethodPost }},
	})
	if err != nil {
		panic(err)
	}

	router := chi.NewRouter()
	router.Use(limits.Handler)
	router.Get("/notes", func(w http.ResponseWriter, r *http.Request) {})
	router.Post("/notes", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) })

	for _, method := range []string{"GET", "POST", "POST"} {
		r := httptest.NewRequest(method, "/notes", nil)
		r.RemoteAddr = "192.0.2.1:1234" // the load balancer
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		r.Header.Set("X-API-Key", "secret")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		fmt.Println(method, w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// GET 200 "clients";r=19;t=1
	// POST 201 "writes";r=0;t=60
	// POST 429 "writes";r=0;t=60
}

// In front of another server, for which failed logins count and others do not.
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
		// A server behind may have limits of its own; two answers to one question would be one too many.
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

// A decision without a handler, for a server that answers in its own way.
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
		fmt.Println(res.Status(), check.Limit, check.Outcome, check.Decision.Remaining, res.RetryAfter())
	}
	// Output:
	// 200 all allowed 0 0s
	// 429 all refused 0 1s
}
