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
		Law: exampletest.Law{Burst: 5, Every: 6 * time.Second}, Method: "GET", Path: "/notes", Limit: "tokens", Status: 200,
	}.Clients(t)
}

// TestCosts: the tokens that are left after a search are not enough for another search, but enough for a note.
func TestCosts(t *testing.T) {
	url := exampletest.Start(t)
	answer := exampletest.Do(t, "GET", url+"/search", "")
	assert.Equal(t, 200, answer.Status)
	assert.Equal(t, `"tokens";r=2;t=12`, answer.Header.Get("RateLimit"))
	answer = exampletest.Do(t, "GET", url+"/search", "")
	assert.Equal(t, 429, answer.Status)
	assert.NotContains(t, answer.Body, "a note", "the handler was not called")
	assert.Equal(t, 200, exampletest.Do(t, "GET", url+"/notes", "").Status)
	assert.NotEqual(t, 200, exampletest.Do(t, "GET", url+"//search", "").Status, "another spelling of the path is no way round")
}

// TestREADME: the requests in README.md get the answers that README.md shows.
func TestREADME(t *testing.T) {
	exampletest.README(t, "README.md", "127.0.0.1:8080", exampletest.Law{Burst: 5, Every: 6 * time.Second}, func() string { return exampletest.Start(t) })
}
