package chi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// stopped is a clock that stands still, so that the example ends the same every time. Without it
// a limiter uses the system's.
var stopped = engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })

// Behind a load balancer that writes X-Forwarded-For, and for two routes of a chi router: reading
// is limited by address, and writing by API key as well.
func Example() {
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
		{Name: "writes", Limiter: writes, Key: apiKey, Match: func(r *http.Request) bool { return r.Method == http.MethodPost }},
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
