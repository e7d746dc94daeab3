//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgramTellsWhetherItIsHealthy(t *testing.T) {
	s := startProgram(t, "serve", file(t, "weir.yaml", "listen: 127.0.0.1:0\nadmin: {address: \"127.0.0.1:0\"}\nrules: [{name: clients, rate: 1/h, burst: 2}]\n"))
	admin := s.until(`msg=listening url=(\S+) for=administrators`)[0]
	address := strings.TrimSuffix(strings.TrimPrefix(admin, "http://"), "/")
	for _, name := range []string{admin, address} {
		assert.Equal(t, result{0, "ready\n", ""}, run(t, build(t), "", "health", name))
	}
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	assert.Equal(t, 0, run(t, build(t), "", "health", address).status, "no proxy is asked")
}

func TestProgramTellsItsHealthByAUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := "unix:" + filepath.Join(dir, "admin")
	s := startProgram(t, "serve", file(t, "weir.yaml", "listen: 127.0.0.1:0\nadmin: "+socket+"\nrules: [{name: clients, rate: 1/h, burst: 2}]\n"))
	s.until(`msg=listening .*for=administrators`)
	assert.Equal(t, result{0, "ready\n", ""}, run(t, build(t), "", "health", socket))
	r := run(t, build(t), "", "health", socket+"2")
	assert.Equal(t, 1, r.status)
	assert.Contains(t, r.stderr, "no answer from "+socket+"2")
}

func TestProgramTellsWhyItIsNotHealthy(t *testing.T) {
	stopping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			http.Error(w, "it is stopping", http.StatusServiceUnavailable)
		}
	}))
	r := run(t, build(t), "", "health", stopping.URL)
	assert.Equal(t, 1, r.status)
	assert.Contains(t, r.stderr, "503 Service Unavailable: it is stopping")
	stopping.Close()
	r = run(t, build(t), "", "health", stopping.URL)
	assert.Equal(t, 1, r.status)
	assert.Contains(t, r.stderr, "no answer from "+stopping.URL)
	r = run(t, build(t), "", "health", "http://[")
	assert.Equal(t, 1, r.status)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	r = run(t, build(t), "", "health", "--timeout", "10ms", silent.URL)
	assert.Equal(t, 1, r.status)
	assert.Contains(t, r.stderr, "deadline exceeded")
}
