package main

import (
	"testing"
	"time"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// TestClients: a client gets only its requests, whatever it writes into X-Forwarded-For.
func TestClients(t *testing.T) {
	exampletest.Request{
		Law: exampletest.Law{Burst: 5, Every: 6 * time.Second}, Method: "GET", Path: "/notes", Limit: "requests", Status: 200,
	}.Clients(t)
}

// TestREADME: the requests in README.md get the answers that README.md shows.
func TestREADME(t *testing.T) {
	exampletest.README(t, "README.md", "127.0.0.1:8080", exampletest.Law{Burst: 5, Every: 6 * time.Second}, func() string { return exampletest.Start(t) })
}
