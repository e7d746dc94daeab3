package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

// TestUsers: a user has one bucket for all addresses. If this bucket refuses a request, no token is taken from the
// address's bucket.
func TestUsers(t *testing.T) {
	url := exampletest.Start(t, "-trust", "127.0.0.1") + "/notes"
	write := func(key, client string) exampletest.Answer {
		return exampletest.Do(t, "POST", url, "", "X-API-Key", key, "X-Forwarded-For", client)
	}
	exampletest.Law{Burst: 2, Every: time.Minute / 2}.Holds(t, func(i int) bool {
		return write("secret-a", fmt.Sprintf("203.0.113.%d", i)).Status == 201
	})
	refused := write("secret-a", "203.0.113.100")
	assert.Equal(t, 429, refused.Status)
	assert.Regexp(t, `^"writes";r=0;t=\d+$`, refused.Header.Get("RateLimit"))
	admitted := write("secret-b", "203.0.113.100")
	assert.Equal(t, 201, admitted.Status, "another user")
	assert.Equal(t, `"writes";r=1;t=60`, admitted.Header.Get("RateLimit"))
	read := exampletest.Do(t, "GET", url, "", "X-Forwarded-For", "203.0.113.100")
	assert.Regexp(t, `^"requests";r=[3-5];`, read.Header.Get("RateLimit"), "after the one write")
}

// TestMadeUpKeys: a client that makes up API keys has only the bucket of its address.
func TestMadeUpKeys(t *testing.T) {
	url := exampletest.Start(t)
	exampletest.Law{Burst: 5, Every: 6 * time.Second}.Holds(t, func(i int) bool {
		status := exampletest.Do(t, "POST", url+"/notes", "", "X-API-Key", fmt.Sprint("secret-", i)).Status
		assert.Contains(t, []int{401, 429}, status)
		return status == 401
	})
}
