package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

var form = []string{"Content-Type", "application/x-www-form-urlencoded"}

// TestClients: a client may send only the allowed number of wrong passwords, whatever it writes into X-Forwarded-For.
func TestClients(t *testing.T) {
	exampletest.Request{
		Law: exampletest.Law{Burst: 3, Every: 20 * time.Second}, Method: "POST", Path: "/login", Body: "password=wrong",
		Header: form, Limit: "failed logins", Status: 401,
	}.Clients(t)
}

// TestGoodLogins: successful logins do not count. When the limit of failed logins is used up, even the right password
// is refused.
func TestGoodLogins(t *testing.T) {
	url := exampletest.Start(t) + "/login"
	login := func(password string) int { return exampletest.Do(t, "POST", url, "password="+password, form...).Status }
	for range 10 {
		assert.Equal(t, 200, login("right"))
	}
	for range 2 {
		assert.Equal(t, 401, login("wrong"))
	}
	for range 10 {
		assert.Equal(t, 200, login("right"))
	}
	assert.Equal(t, 401, login("wrong"))
	assert.Equal(t, 429, login("wrong"))
	assert.Equal(t, 429, login("right"))
}

// TestREADME: the requests in README.md get the answers that README.md shows.
func TestREADME(t *testing.T) {
	exampletest.README(t, "README.md", "127.0.0.1:8080", exampletest.Law{Burst: 3, Every: 20 * time.Second}, func() string { return exampletest.Start(t) })
}
