package budget

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/serve"
	"github.com/weir-go/weir/internal/freeport"
)

const tokens = 10_000

// audited audits the gateway at a URL. The gateway expects the model at the address in model.
func audited(t *testing.T, gateway, model string, all []check) *Report {
	t.Helper()
	u, err := url.Parse(gateway)
	require.NoError(t, err)
	r, err := run(t.Context(), Options{URL: u, Address: netip.MustParseAddrPort(u.Host), Listen: model, Model: "tiny",
		Fields: [][2]string{{"X-Team", "team-{n}"}}, UserAgent: "weir-audit", Tokens: tokens}, all)
	require.NoError(t, err)
	return r
}

func (r *Report) faults() (names []string) {
	for _, result := range r.Results {
		if result.Fault != "" {
			names = append(names, result.Name)
		}
	}
	return names
}

// TestWeirServe: the audit of weir serve makes every check and finds no fault.
func TestWeirServe(t *testing.T) {
	address, model := freeport.Address(t), freeport.Address(t)
	text := "listen: " + address + "\nupstream: http://" + model + `
rules:
  - {name: tokens, key: "header:X-Team", rate: 10000/d, max_keys: 1000, tokens: {ask_usage: true, fields: openai}}
`
	load := func() (*rulefile.File, error) { return rulefile.Parse("weir.yaml", []byte(text)) }
	file, err := load()
	require.NoError(t, err)
	s, err := serve.Start(serve.Config{File: file, Load: load, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-stopped })
	r := audited(t, "http://"+address, model, checks())
	for _, result := range r.Results {
		assert.Empty(t, result.Fault, result.Name)
		assert.Empty(t, result.Skipped, result.Name)
	}
	var out strings.Builder
	require.NoError(t, r.WriteText(&out))
	t.Log(out.String())
	assert.Contains(t, out.String(), "\n0 to look at\n")
	out.Reset()
	require.NoError(t, r.WriteJSON(&out))
	assert.True(t, json.Valid([]byte(out.String())))
}

// seeded has each possible fault of the tests' gateway, with the check that finds it.
var seeded = map[string]string{
	"":                                      "",
	"holds nothing":                         "100 requests at once",
	"refusals are charged":                  "a refusal takes nothing",
	"no bound is all":                       "a request without a bound",
	"above the budget is free":              "a bound above the budget",
	"a negative bound is held":              "a negative bound",
	"the second bound does not count":       "two bounds, the larger one second",
	"the prompt does not count":             "a long prompt",
	"n does not count":                      "several answers to one request",
	"an image is text":                      "an image",
	"an image is nothing":                   "an image",
	"a large input is cut":                  "a small body with a large input",
	"the bound of responses does not count": "the bound of responses",
	"a list costs":                          "the list of models",
	"errors cost":                           "answers of status 400",
	"errors of the server cost":             "answers of status 500",
	"leaving early is free":                 "a client that leaves before the first byte",
	"leaving in the middle is free":         "a client that leaves in the middle",
	"settles at the end":                    "a client that leaves at [DONE]",
	"what was said so far is final":         "a stream that breaks off",
	"no usage is free":                      "a stream without a usage",
	"asks for the usage openly":             "an event that only the gateway asked for",
	"compressed is not read":                "a compressed answer",
	"each usage is charged":                 "a usage that comes twice",
	"sent again and charged again":          "a request that the gateway sends again",
	"no debt":                               "what was used beyond the budget",
	"SDKs are told to retry":                "the answer to a refused request",
	"a form of its own":                     "the answer to a refused request",
	"hostile numbers are taken":             "a usage of -600 and 15",
	"a write to the cache is free":          "anthropic.json",
	"a hit of the cache is free":            "openai-chat.json",
}

// TestEachFaultIsFound: the check in seeded finds each fault. In a gateway without faults, no check finds one.
func TestEachFaultIsFound(t *testing.T) {
	for fault, by := range seeded {
		t.Run(fault, func(t *testing.T) {
			model := freeport.Address(t)
			g := &gateway{upstream: "http://" + model, limit: tokens, fault: fault, left: map[string]int{}}
			transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: parallelRequests}
			defer transport.CloseIdleConnections()
			g.client.Transport = transport
			server := httptest.NewServer(g)
			defer server.Close()
			all := slices.DeleteFunc(checks(), func(c check) bool {
				return fault != "" && c.name != by && c.name != "the budget of a key" && c.name != "an estimate is held"
			})
			r := audited(t, server.URL, model, all)
			if by == "" {
				assert.Empty(t, r.faults(), "%+v", r.Results)
			} else {
				assert.Contains(t, r.faults(), by)
			}
			t.Log(r.faults())
		})
	}
}

// TestAGatewayThatSendsAgain: a gateway that retries but charges once has no fault.
func TestAGatewayThatSendsAgain(t *testing.T) {
	model := freeport.Address(t)
	g := &gateway{upstream: "http://" + model, limit: tokens, fault: "sent again", left: map[string]int{}}
	server := httptest.NewServer(g)
	defer server.Close()
	r := audited(t, server.URL, model, slices.DeleteFunc(checks(), func(c check) bool { return !strings.Contains(c.name, "sends again") }))
	require.Len(t, r.Results, 1)
	assert.Empty(t, r.faults())
	assert.Contains(t, r.Results[0].Found, "sent 2 times")
}

// TestNothingToMeasure: without a gateway, without a budget, or with another budget than the options state, the audit
// returns an error.
func TestNothingToMeasure(t *testing.T) {
	for fault, says := range map[string]string{"": "a key is refused after", "refuses nothing": "a key is not refused after"} {
		model := freeport.Address(t)
		g := &gateway{upstream: "http://" + model, limit: 5000, fault: fault, left: map[string]int{}}
		server := httptest.NewServer(g)
		u, err := url.Parse(server.URL)
		require.NoError(t, err)
		o := Options{URL: u, Address: netip.MustParseAddrPort(u.Host), Listen: model, Model: "tiny", Tokens: tokens}
		_, err = Run(t.Context(), o)
		require.ErrorIs(t, err, ErrNoBudget)
		assert.ErrorContains(t, err, says)
		server.Close()
		_, err = Run(t.Context(), o)
		assert.ErrorContains(t, err, "the model did not get the first request")
		assert.ErrorContains(t, err, "The audit is the model at "+model+": the gateway has to pass requests on to that address")
	}
}

// TestAnAnswerThatBreaksOffNamesTheURL: the error names the request whose answer breaks off.
func TestAnAnswerThatBreaksOffNamesTheURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("cut"))
	}))
	defer server.Close()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	a := &auditor{Options: Options{URL: u}, client: server.Client(), model: &model{counts: map[int]int{}}}
	got := a.newKey().do(t.Context(), gatewayRequest{method: http.MethodPost, path: "/v1/chat/completions"})
	assert.EqualError(t, got.err, "POST "+server.URL+"/v1/chat/completions: unexpected EOF")
}
