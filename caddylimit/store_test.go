package caddylimit_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
)

// startRedis returns the address of a real redis-server.
func startRedis(t *testing.T) string {
	t.Helper()
	address := "127.0.0.1:" + testcaddy.FreePort(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	process := testcaddy.Run(t, testcaddy.Program(t, "redis-server"), "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir())
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_, err = io.WriteString(conn, "PING\r\n")
			require.NoError(t, err)
			answer := make([]byte, 5)
			_, err = io.ReadFull(conn, answer)
			require.NoError(t, conn.Close())
			if err == nil && string(answer) == "+PONG" {
				return address
			}
		}
		select {
		case <-process.Exited:
			t.Fatal(process.Output.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestLimitsInAStore: both modules count in the store. A second zone of the same numbers and name, as another machine
// has it, shares the count.
func TestLimitsInAStore(t *testing.T) {
	store := startRedis(t)
	t.Setenv("WEIR_TEST_STORE", "redis://"+store)
	weir := `{"store":"{env.WEIR_TEST_STORE}","limits":[{"name":"stored","rate":"3/h"},{"name":"flights","concurrency":5},
		{"name":"by quota","rate":"4/h","quota":"{http.request.header.Quota}"}]}`
	c := start(t, weir)
	assert.Equal(t, 1, passed(c, 1))
	assert.Equal(t, 2, passed(c, 4))
	c.Stop(t)
	assert.Equal(t, 0, passed(start(t, weir), 3), "the store has not forgotten")

	compat := testcaddy.Start(t, "rate_limit", `{"store":"redis://`+store+`","on_failure":"closed","rate_limits":{
		"stored":{"key":"{http.request.header.X}","window":"1h","max_events":3},"none":{"match":[{"method":["PUT"]}],"window":"1h","max_events":0}}}`)
	assert.Equal(t, 3, passed(compat, 5, "X", "a"))
	assert.Equal(t, 3, passed(compat, 5, "X", "b"))
	put := testcaddy.From("192.0.2.1:1")
	put.Method = http.MethodPut
	assert.Equal(t, http.StatusTooManyRequests, compat.Do(put).Code)
	_, err := testcaddy.Provision(t, "weir", strings.Replace(weir, `"concurrency":5`, `"rate":"1/s","overflow":"refuse"`, 1))
	assert.ErrorContains(t, err, "a store has no table that could be full")
}
