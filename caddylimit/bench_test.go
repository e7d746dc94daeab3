package caddylimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
)

// BenchmarkHandler measures an admitted request in the handler with limits, and in an empty handler.
func BenchmarkHandler(b *testing.B) {
	const many = "1000000000/s"
	for name, config := range map[string][2]string{
		"empty":                    {},
		"weir, by address":         {"weir", `{"headers":["none"],"limits":[{"name":"bench a","rate":"` + many + `"}]}`},
		"weir, with RateLimit":     {"weir", `{"limits":[{"name":"bench b","rate":"` + many + `"}]}`},
		"weir, three limits":       {"weir", `{"headers":["none"],"limits":[{"name":"bench c","rate":"` + many + `"},{"name":"bench d","rate":"` + many + `"},{"name":"bench e","rate":"` + many + `"}]}`},
		"rate_limit":               {"rate_limit", `{"disable_metrics":true,"rate_limits":{"bench":{"key":"{http.request.remote.host}","window":"1us","max_events":100}}}`},
		"rate_limit, with metrics": {"rate_limit", `{"rate_limits":{"bench metrics":{"key":"{http.request.remote.host}","window":"1us","max_events":100}}}`},
	} {
		b.Run(name, func(b *testing.B) {
			var handler caddyhttp.Handler = testcaddy.Next
			if config[0] != "" {
				module := testcaddy.Start(b, config[0], config[1]).Handlers[0]
				handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
					return module.ServeHTTP(w, r, testcaddy.Next)
				})
			}
			w := httptest.NewRecorder()
			r := testcaddy.Prepare(testcaddy.From("192.0.2.1:1"), w)
			b.ReportAllocs()
			for b.Loop() {
				if err := handler.ServeHTTP(w, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
