package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// Each user has the limit of a plan. User anna may send 3 requests per hour, and every other user 1.
func ExampleLimit_quota() {
	plans := map[string]uint64{"anna": 3}
	user, err := httplimit.Header("X-User", httplimit.RemoteIP) // written by a proxy that has authenticated the user
	if err != nil {
		panic(err)
	}
	// The limiter accepts quotas of any rate, as long as a bucket fills within two hours.
	limiter, err := engine.New(engine.TokenBuckets(2*time.Hour), engine.MaxKeys(10_000))
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	limits, err := httplimit.New([]httplimit.Limit{{
		Name: "plan", Limiter: limiter, Key: user,
		Quota: func(r *http.Request) (engine.Policy, error) {
			n := max(plans[r.Header.Get("X-User")], 1)
			return engine.TokenBucket(engine.Per(float64(n), time.Hour), n), nil
		},
	}})
	if err != nil {
		panic(err)
	}
	handler := limits.Handler(http.NotFoundHandler())
	for _, name := range []string{"anna", "anna", "anna", "anna", "bert", "bert"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-User", name)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(name, w.Code)
	}
	// Output:
	// anna 404
	// anna 404
	// anna 404
	// anna 429
	// bert 404
	// bert 429
}
