package contrib

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/contrib/echolimit"
	"github.com/weir-go/weir/contrib/fiberlimit"
	"github.com/weir-go/weir/contrib/ginlimit"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// frameworks has a function for each framework that starts a server until the test ends, and returns its URL. Its paths
// answer 200 (/ok), 401 (/no), 403 by an error (/error), or panic (/panic), and each path calls the function during.
var frameworks = map[string]func(t *testing.T, limits *httplimit.Middleware, during func()) (url string){
	"gin": func(t *testing.T, limits *httplimit.Middleware, during func()) string {
		gin.SetMode(gin.ReleaseMode)
		router := gin.New()
		router.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, _ any) { c.AbortWithStatus(500) }), ginlimit.Handler(limits))
		router.GET("/ok", func(c *gin.Context) { during(); c.String(200, "ok") })
		router.GET("/no", func(c *gin.Context) { during(); c.String(401, "no") })
		router.GET("/error", func(c *gin.Context) { during(); _ = c.AbortWithError(403, errors.New("error")) })
		router.GET("/panic", func(*gin.Context) { during(); panic("panic") })
		return served(t, router)
	},
	"echo": func(t *testing.T, limits *httplimit.Middleware, during func()) string {
		e := echo.New()
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) (err error) {
				defer func() {
					if recover() != nil {
						err = echo.NewHTTPError(500, "panic")
					}
				}()
				return next(c)
			}
		}, echolimit.Middleware(limits))
		e.GET("/ok", func(c *echo.Context) error { during(); return c.String(200, "ok") })
		e.GET("/no", func(c *echo.Context) error { during(); return c.String(401, "no") })
		e.GET("/error", func(*echo.Context) error { during(); return echo.NewHTTPError(403, "error") })
		e.GET("/panic", func(*echo.Context) error { during(); panic("panic") })
		return served(t, e)
	},
	"fiber": func(t *testing.T, limits *httplimit.Middleware, during func()) string {
		app := fiber.New()
		app.Use(func(c fiber.Ctx) (err error) {
			defer func() {
				if recover() != nil {
					err = fiber.NewError(500, "panic")
				}
			}()
			return c.Next()
		}, fiberlimit.Handler(limits))
		app.Get("/ok", func(c fiber.Ctx) error { during(); return c.SendString("ok") })
		app.Get("/no", func(c fiber.Ctx) error { during(); return c.Status(401).SendString("no") })
		app.Get("/error", func(fiber.Ctx) error { during(); return fiber.NewError(403, "error") })
		app.Get("/panic", func(fiber.Ctx) error { during(); panic("panic") })
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
		t.Cleanup(func() {
			assert.NoError(t, app.Shutdown())
			assert.NoError(t, <-ended)
		})
		return "http://" + listener.Addr().String()
	},
}

func served(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// each runs a test with every framework and a limit with the policy. The function change may change other fields of the
// limit.
func each(t *testing.T, policy engine.Policy, change func(*httplimit.Limit), during func(*testing.T),
	test func(t *testing.T, limiter *engine.Limiter, get func(path string, headers ...string) *http.Response)) {
	for name, start := range frameworks {
		t.Run(name, func(t *testing.T) {
			stopped := engine.ClockFunc(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })
			limiter, err := engine.New(policy, stopped)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, limiter.Close()) })
			limit := httplimit.Limit{Name: "default", Limiter: limiter, Key: httplimit.Everyone}
			change(&limit)
			limits, err := httplimit.New([]httplimit.Limit{limit})
			require.NoError(t, err)
			url := start(t, limits, func() { during(t) })
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			test(t, limiter, func(path string, headers ...string) *http.Response {
				r, err := http.NewRequest("GET", url+path, nil)
				require.NoError(t, err)
				for i := 0; i < len(headers); i += 2 {
					r.Header.Add(headers[i], headers[i+1])
				}
				response, err := client.Do(r)
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				response.Header.Set("Test-Body", strings.Map(func(r rune) rune { return max(r, ' ') }, string(body)))
				return response
			})
		})
	}
}

func nothing(*testing.T) {}

// TestRefusals: a refused request reaches no handler, and gets the same answer as from httplimit.
func TestRefusals(t *testing.T) {
	each(t, engine.TokenBucket(engine.Per(1, time.Minute), 2), func(*httplimit.Limit) {}, nothing,
		func(t *testing.T, _ *engine.Limiter, get func(string, ...string) *http.Response) {
			for left := range 2 {
				response := get("/ok")
				assert.Equal(t, 200, response.StatusCode)
				assert.Equal(t, "ok", response.Header.Get("Test-Body"))
				assert.Equal(t, []string{`"default";r=` + string(rune('1'-left)) + `;t=60`}, response.Header["Ratelimit"])
			}
			response := get("/ok")
			assert.Equal(t, 429, response.StatusCode)
			assert.Equal(t, []string{"60"}, response.Header["Retry-After"])
			assert.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
			assert.Contains(t, response.Header.Get("Test-Body"), "429")
		})
}

// TestRefunds: a refund depends on the status that the client gets, even after an error or a panic.
func TestRefunds(t *testing.T) {
	each(t, engine.TokenBucket(engine.Per(1, time.Minute), 4), func(l *httplimit.Limit) { l.Refund = httplimit.RefundStatus(200, 299) }, nothing,
		func(t *testing.T, limiter *engine.Limiter, get func(string, ...string) *http.Response) {
			for _, c := range []struct {
				path         string
				status, left int
			}{{"/ok", 200, 4}, {"/no", 401, 3}, {"/error", 403, 2}, {"/panic", 500, 1}, {"/ok", 200, 1}, {"/none", 404, 0}} {
				assert.Equal(t, c.status, get(c.path).StatusCode, c.path)
				assert.EqualValues(t, c.left, limiter.Peek(limiter.KeyUint64(0), 1).Remaining, c.path)
			}
		})
}

// TestInFlight: a request is in flight exactly while its handler runs, even if the handler panics.
func TestInFlight(t *testing.T) {
	var in *engine.Limiter
	each(t, engine.Concurrency(2, time.Hour), func(l *httplimit.Limit) { in = l.Limiter },
		func(t *testing.T) { assert.EqualValues(t, 1, in.Peek(in.KeyUint64(0), 1).Remaining) },
		func(t *testing.T, limiter *engine.Limiter, get func(string, ...string) *http.Response) {
			for _, path := range []string{"/ok", "/no", "/error", "/panic"} {
				get(path)
				assert.EqualValues(t, 2, limiter.Peek(limiter.KeyUint64(0), 1).Remaining, path)
			}
		})
}

// TestTwoValuesOfAKey: the limits get both values of a header field, as with net/http, so the key is the same as with
// httplimit.
func TestTwoValuesOfAKey(t *testing.T) {
	want := http.Header{"X-Api-Key": {"a", "b"}}
	each(t, engine.TokenBucket(engine.Per(1, time.Minute), 4), func(l *httplimit.Limit) {
		l.Key = func(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
			assert.Equal(t, want["X-Api-Key"], r.Header["X-Api-Key"])
			assert.Equal(t, "/ok", r.URL.Path)
			assert.Equal(t, "a=b&c", r.URL.RawQuery)
			assert.Empty(t, r.Header["Host"])
			assert.NotEmpty(t, r.Host)
			_, _, err := net.SplitHostPort(r.RemoteAddr)
			assert.NoError(t, err)
			return h.Key(r.Header.Get("X-Api-Key")), true
		}
	}, nothing, func(t *testing.T, _ *engine.Limiter, get func(string, ...string) *http.Response) {
		assert.Equal(t, 200, get("/ok?a=b&c", "X-API-Key", "a", "X-API-Key", "b").StatusCode)
	})
}
