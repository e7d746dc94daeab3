package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// TestClients: a client gets only its requests, whatever it writes into X-Forwarded-For.
func TestClients(t *testing.T) {
	exampletest.Request{
		Law: exampletest.Law{Burst: 5, Every: 6 * time.Second}, Method: "GET", Path: "/notes", Limit: "requests", Status: 200,
	}.Clients(t)
}

// TestAllOrNothing: a refused post takes no token from the limit for all requests.
func TestAllOrNothing(t *testing.T) {
	url := exampletest.Start(t) + "/notes"
	for _, want := range []string{`^"posts";r=1;t=60$`, `^"posts";r=0;t=\d+$`} {
		answer := exampletest.Do(t, "POST", url, "")
		assert.Equal(t, 201, answer.Status)
		assert.Regexp(t, want, answer.Header.Get("RateLimit"))
		assert.Equal(t, `"requests";q=5;w=30, "posts";q=2;w=60`, answer.Header.Get("RateLimit-Policy"))
	}
	for range 3 {
		answer := exampletest.Do(t, "POST", url, "")
		assert.Equal(t, 429, answer.Status)
		assert.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"))
		assert.Contains(t, answer.Body, `"violated-policies":["posts"]`)
	}
	answer := exampletest.Do(t, "GET", url, "")
	assert.Equal(t, 200, answer.Status)
	assert.Regexp(t, `^"requests";r=[2-5];`, answer.Header.Get("RateLimit"), "two posts and this one")
}

// TestREADME: the requests in README.md get the answers that README.md shows.
func TestREADME(t *testing.T) {
	exampletest.README(t, "README.md", "127.0.0.1:8080", exampletest.Law{Burst: 5, Every: 6 * time.Second}, func() string { return exampletest.Start(t) })
}
