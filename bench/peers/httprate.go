package peers

import (
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/httprate"
)

type silent struct{ header http.Header }

func (s silent) Header() http.Header         { return s.header }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }
func (s silent) WriteHeader(int)             {}

var httprateCounter = Peer{
	Name:    "httprate",
	Module:  "github.com/go-chi/httprate",
	Package: true,
	How: "RateLimiter.OnLimit on the local counter with every response header turned off, one request and " +
		"response for all",
	New: func(limit Limit, _ int) (Limiter, error) {
		l := httprate.NewRateLimiter(limit.Tokens, limit.Per, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
		request, response := httptest.NewRequest(http.MethodGet, "/", nil), silent{http.Header{}}
		return allow(func(key string) bool { return !l.OnLimit(response, request, key) }), nil
	},
	Cannot: map[Ability]string{Bound: "the keys of two windows are kept, however many they are"},
}
