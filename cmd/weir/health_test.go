//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
