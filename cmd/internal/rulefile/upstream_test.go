package rulefile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/proxy"
)

func TestSeveralServers(t *testing.T) {
	const rule = "\nrules: [{name: a, rate: 1/s}]"
	f, err := Parse("weir.yaml", []byte(`upstream:
  url: ["http://127.0.0.1:3000/app", "unix:/run/app.sock"]
  health: {path: /healthz?full=1, interval: 5s, timeout: 1s, passes: 1, fails: 2}`+rule))
	require.NoError(t, err)
	u := f.Upstream
	assert.Equal(t, "http://127.0.0.1:3000/app or unix:/run/app.sock", u.String())
	assert.Equal(t, "/run/app.sock", u.Targets[1].Socket)
	assert.Equal(t, "http://localhost", u.Targets[1].URL.String())
	assert.Equal(t, &proxy.Health{Path: "/healthz?full=1", Interval: 5 * time.Second, Timeout: time.Second, Passes: 1, Fails: 2}, u.Health)
	assert.Empty(t, f.Warnings())

	f, err = Parse("weir.yaml", []byte("upstream: [unix:/a, \"http://b\"]"+rule))
	require.NoError(t, err)
	assert.Equal(t, "unix:/a or http://b", f.Upstream.String())
	f, err = Parse("weir.yaml", []byte("upstream: {url: unix:/a, health: /well}"+rule))
	require.NoError(t, err)
	assert.Equal(t, &proxy.Health{Path: "/well", Interval: 10 * time.Second, Timeout: 2 * time.Second, Passes: 2, Fails: 3}, f.Upstream.Health)

	for _, row := range []string{"`interval` | the time between checks | `10s`", "`timeout` | how long a check may take | `2s`",
		"`passes` | how many consecutive successes bring a server back | `2`", "`fails` | how many consecutive failures take a server out | `3`"} {
		assert.Contains(t, document(t), row)
	}

	for text, want := range map[string]string{
		"listen: unix:/a\nupstream: unix:/a": "upstream: unix:/a is where weir itself listens, at unix:/a: requests would " +
			"go round until they time out",
		"upstream: {url: \"http://a\", health: {path: /, interval: 1s}}": "upstream: health: a check may take 2s and one begins every 1s: the next one waits for the last",
	} {
		f, err := Parse("weir.yaml", []byte(text+rule))
		require.NoError(t, err)
		assert.Equal(t, want, strings.Join(f.Warnings(), "\n"))
	}
}

// TestARequestThatNobodyWaitsForEnds: ignore_client_abort needs a response_timeout. Otherwise nothing would end a
// request whose client has gone.
func TestARequestThatNobodyWaitsForEnds(t *testing.T) {
	const rule = ", ignore_client_abort: true}\nrules: [{name: a, rate: 1/s}]"
	f, err := Parse("weir.yaml", []byte("upstream: {url: \"http://a\""+rule))
	require.NoError(t, err)
	assert.True(t, f.Upstream.IgnoreAbort)
	_, err = Parse("weir.yaml", []byte("upstream: {url: \"http://a\", response_timeout: 0s"+rule))
	assert.ErrorContains(t, err, "ignore_client_abort: with response_timeout: 0s")
}
