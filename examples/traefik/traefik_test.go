package traefik

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// read decodes a YAML file into v. A key without a field in v fails the test.
func read(t *testing.T, name string, v any) {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(v), name)
}

// TestConfiguration decodes the files as Traefik would. A name that refers to a part of another file must exist, and
// the middleware must call weir at the address in decide.yaml.
func TestConfiguration(t *testing.T) {
	var static struct {
		EntryPoints map[string]struct{ Address string } `yaml:"entryPoints"`
		Providers   struct{ File struct{ Directory string } }
		Ping        struct {
			ManualRouting bool `yaml:"manualRouting"`
		}
		Log struct{ Level string }
	}
	read(t, "traefik.yaml", &static)
	var app struct {
		HTTP struct {
			Routers map[string]struct {
				EntryPoints []string `yaml:"entryPoints"`
				Middlewares []string
				Rule        string
				Service     string
			}
		}
	}
	read(t, static.Providers.File.Directory+"/app.yaml", &app)
	var weir struct {
		HTTP struct {
			Middlewares map[string]struct {
				ForwardAuth struct {
					Address                  string
					TrustForwardHeader       *bool  `yaml:"trustForwardHeader"`
					AuthResponseHeadersRegex string `yaml:"authResponseHeadersRegex"`
				} `yaml:"forwardAuth"`
			}
		}
	}
	read(t, static.Providers.File.Directory+"/weir.yaml", &weir)
	var rules struct {
		Decide  string
		Trusted string `yaml:"trusted_proxies"`
		Admin   string
		Rules   []any
	}
	read(t, "../decide.yaml", &rules)

	require.Len(t, app.HTTP.Routers, 1)
	router := app.HTTP.Routers["app"]
	assert.Equal(t, "PathPrefix(`/`)", router.Rule)
	assert.Equal(t, "ping@internal", router.Service)
	assert.True(t, static.Ping.ManualRouting)
	require.Len(t, router.EntryPoints, 1)
	assert.True(t, strings.HasPrefix(static.EntryPoints[router.EntryPoints[0]].Address, "127.0.0.1:"))
	require.Len(t, router.Middlewares, 1)
	auth := weir.HTTP.Middlewares[router.Middlewares[0]].ForwardAuth
	assert.Equal(t, "http://"+rules.Decide+"/decide", auth.Address)
	if assert.NotNil(t, auth.TrustForwardHeader) {
		assert.False(t, *auth.TrustForwardHeader, "a client could name its address")
	}
	assert.Equal(t, "127.0.0.1", rules.Trusted)
}
