package reading_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/httplimit/reading"
)

// A limit allows two logins per hour. It does not matter how a client spells the path.
func Example() {
	login, err := reading.ParsePath("/login")
	if err != nil {
		panic(err)
	}
	logins := reading.Match{Paths: []reading.Path{login}, Methods: []string{http.MethodPost}}

	limiter, err := engine.New(engine.TokenBucket(engine.Per(2, time.Hour), 2))
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limits, err := httplimit.New([]httplimit.Limit{{
		Name: "login", Limiter: limiter,
		Match: func(r *http.Request) bool { return logins.Meets(r, nil) },
	}})
	if err != nil {
		panic(err)
	}

	handler := limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, path := range []string{"/login", "/x/../login", "/%6cogin", "/LOGIN;v=1", "/logout"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /login 200
	// /x/../login 200
	// /%6cogin 429
	// /LOGIN;v=1 429
	// /logout 200
}

// An exception from a limit must apply only if every server reads the path in the same way.
func ExampleMatch_IsCertain() {
	health, err := reading.ParsePath("/health")
	if err != nil {
		panic(err)
	}
	exempt := reading.Match{Paths: []reading.Path{health}}
	for _, path := range []string{"/health", "/health;v=1", "/HEALTH"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		fmt.Println(path, exempt.Meets(r, nil), exempt.IsCertain(r, nil))
	}
	// Output:
	// /health true true
	// /health;v=1 true false
	// /HEALTH true false
}
