package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

func TestKeySourceReadsWhatItWrites(t *testing.T) {
	for text, want := range map[string]string{
		"ip": "ip", "header:X-API-Key": "header:X-Api-Key", "header:authorization": "header:Authorization",
	} {
		var k KeySource
		require.NoError(t, k.UnmarshalText([]byte(text)))
		assert.Equal(t, want, k.String())
	}
}

func TestKeySourceSaysWhatItWants(t *testing.T) {
	for text, want := range map[string]string{
		"":                         `key "": want ip, or header:NAME such as header:X-API-Key`,
		"IP":                       `key "IP": want ip`,
		"cookie:sid":               `key "cookie:sid": want ip`,
		"header:":                  `key "header:": "" is not the name of an HTTP header`,
		"header:a b":               `"a b" is not the name of an HTTP header`,
		"header:X-Kéy":             `"X-Kéy" is not the name of an HTTP header`,
		"header:host":              `host steers HTTP itself and cannot be a key`,
		"header:Transfer-Encoding": `Transfer-Encoding steers HTTP itself`,
	} {
		var k KeySource
		assert.ErrorContains(t, k.UnmarshalText([]byte(text)), want)
		assert.Equal(t, KeySource{}, k)
	}
}

func TestClientAddress(t *testing.T) {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1))
	require.NoError(t, err)
	defer limiter.Close()
	for remote, want := range map[string]string{
		"192.0.2.1:80":          "ip 192.0.2.1",
		"[::ffff:192.0.2.1]:80": "ip 192.0.2.1",
		"[2001:db8::1]:80":      "ip 2001:db8::1",
		"[fe80::1%eth0]:80":     "ip fe80::1",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = remote
		got, err := KeySource{}.client(r)
		require.NoError(t, err)
		assert.Equal(t, want, got.String())
		assert.Equal(t, limiter.KeyAddr(got.addr), got.key(limiter))
	}
}

func TestClientCostsNoAllocation(t *testing.T) {
	limiter, err := engine.New(engine.TokenBucket(engine.PerSecond(1), 1), engine.MaxKeys(1))
	require.NoError(t, err)
	defer limiter.Close()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Api-Key", "alice")
	for _, source := range []KeySource{{}, {header: "X-Api-Key"}} {
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			who, err := source.client(r)
			if err != nil {
				t.Error(err)
			}
			who.key(limiter)
		}), source)
	}
}
