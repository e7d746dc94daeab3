package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// One request a second and five at once, for each client address.
func Example() {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 5))
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
