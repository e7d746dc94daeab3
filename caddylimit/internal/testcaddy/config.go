// Package testcaddy runs handlers in Caddy, for tests.
package testcaddy

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/stretchr/testify/require"
)

// A Config is a configuration that has handlers but no server: tests pass requests to the handlers.
type Config struct {
	Handlers []caddyhttp.MiddlewareHandler
	ctx      caddy.Context
	cancel   context.CancelFunc
}

// quietConfig turns off Caddy's log and its admin endpoint.
const quietConfig = `{"admin":{"disabled":true,"config":{"persist":false}},"logging":{"logs":{"default":{"level":"WARN","writer":{"output":"discard"}}}}}`

// provisioning guards caddy.ProvisionContext, which sets variables of the process.
var provisioning sync.Mutex

// Provision provisions handlers of a module, each from its JSON, as parts of one configuration. It does not start the
// configuration.
func Provision(t testing.TB, module string, handlers ...string) (*Config, error) {
	t.Helper()
	provisioning.Lock()
	defer provisioning.Unlock()
	config := new(caddy.Config)
	require.NoError(t, json.Unmarshal([]byte(quietConfig), config))
	base, err := caddy.ProvisionContext(config)
	require.NoError(t, err)
	c := &Config{}
	c.ctx, c.cancel = caddy.NewContext(base)
	for _, text := range handlers {
		handler, err := c.ctx.LoadModuleByID("http.handlers."+module, []byte(text))
		if err != nil {
			c.cancel()
			return nil, err
		}
		c.Handlers = append(c.Handlers, handler.(caddyhttp.MiddlewareHandler))
	}
	return c, nil
}

// Start provisions handlers and starts the configuration. The configuration stops at the end of the test at the latest.
func Start(t testing.TB, module string, handlers ...string) *Config {
	t.Helper()
	c, err := Provision(t, module, handlers...)
	require.NoError(t, err)
	c.Start(t)
	return c
}

// Start starts the configuration.
func (c *Config) Start(t testing.TB) {
	t.Helper()
	require.NoError(t, c.app(t).Start())
	t.Cleanup(func() { c.Stop(t) })
}

// Stop stops the configuration and cleans it up. A second call does nothing.
func (c *Config) Stop(t testing.TB) {
	if c.cancel == nil {
		return
	}
	require.NoError(t, c.app(t).Stop())
	c.GiveUp()
}

// GiveUp cleans up the configuration, as Caddy does if the configuration cannot start.
func (c *Config) GiveUp() {
	c.cancel()
	c.cancel = nil
}

// Context returns the context of the configuration.
func (c *Config) Context() caddy.Context { return c.ctx }

func (c *Config) app(t testing.TB) caddy.App {
	app, err := c.ctx.App("weir")
	require.NoError(t, err)
	return app.(caddy.App)
}

// Do passes a request to the first handler, and returns the answer. If the handler returns an error, the answer has the
// status of the error.
func (c *Config) Do(r *http.Request) *httptest.ResponseRecorder { return c.DoBy(0, r) }

// DoBy passes a request to the handler with the given index.
func (c *Config) DoBy(handler int, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	err := c.Handlers[handler].ServeHTTP(w, Prepare(r, w), Next)
	if handlerErr, ok := err.(caddyhttp.HandlerError); ok {
		w.WriteHeader(handlerErr.StatusCode)
	}
	return w
}

// DoTrusted does the same as Do. The argument trusted says whether the request comes from a trusted proxy of the
// server.
func (c *Config) DoTrusted(r *http.Request, trusted bool) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r = Prepare(r, w)
	caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, trusted)
	err := c.Handlers[0].ServeHTTP(w, r, Next)
	if handlerErr, ok := err.(caddyhttp.HandlerError); ok {
		w.WriteHeader(handlerErr.StatusCode)
	}
	return w
}

// Next is a handler that answers 200.
var Next = caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
})

// Prepare adds to a request everything that Caddy's server adds.
func Prepare(r *http.Request, w http.ResponseWriter) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
}

// From returns a request from an address.
func From(remote string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
	r.RemoteAddr = remote
	return r
}
