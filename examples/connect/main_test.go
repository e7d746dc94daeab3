package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

var asJSON = []string{"Content-Type", "application/json"}

// TestClients: a client gets only its tokens, whatever it writes into X-Forwarded-For.
func TestClients(t *testing.T) {
	exampletest.Request{
		Law: exampletest.Law{Burst: 5, Every: 6 * time.Second}, Method: "POST", Path: procedure, Body: `"anna"`,
		Header: asJSON, Status: 200, Bare: []int{200, 429},
	}.Clients(t)
}

// TestCosts: the cost of a call depends on the length of its message. A cost above the limit never passes.
func TestCosts(t *testing.T) {
	url := exampletest.Start(t) + procedure
	call := func(length int) exampletest.Answer {
		return exampletest.Do(t, "POST", url, `"`+strings.Repeat("a", length)+`"`, asJSON...)
	}
	never := call(600)
	assert.Equal(t, 429, never.Status)
	assert.Contains(t, never.Body, `"code":"resource_exhausted"`)
	assert.Empty(t, never.Header.Get("Retry-After"))
	assert.Equal(t, `"ANNA"`, exampletest.Do(t, "POST", url, `"anna"`, asJSON...).Body)
	assert.Equal(t, 429, call(450).Status, "five tokens, and four are left")
	assert.Equal(t, 200, call(350).Status)
}

// TestGRPC: a gRPC client has the same limit, and a refusal says how long to wait.
func TestGRPC(t *testing.T) {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](&http.Client{Transport: transport},
		exampletest.Start(t)+procedure, connect.WithGRPC())
	exampletest.Law{Burst: 5, Every: 6 * time.Second}.Holds(t, func(int) bool {
		resp, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String("anna")))
		if err == nil {
			assert.Equal(t, "ANNA", resp.Msg.GetValue())
			return true
		}
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), err)
		var refusal *connect.Error
		require.ErrorAs(t, err, &refusal)
		var wait time.Duration
		for _, detail := range refusal.Details() {
			if value, err := detail.Value(); assert.NoError(t, err) {
				if info, ok := value.(*errdetails.RetryInfo); ok {
					wait = info.GetRetryDelay().AsDuration()
				}
			}
		}
		assert.Positive(t, wait)
		assert.LessOrEqual(t, wait, 6*time.Second)
		return false
	})
}

// TestREADME: the requests in README.md get the answers that README.md shows.
func TestREADME(t *testing.T) {
	exampletest.README(t, "README.md", "127.0.0.1:8080", exampletest.Law{Burst: 5, Every: 6 * time.Second}, func() string { return exampletest.Start(t) })
}
