package main

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

const tried = `
exempt: {path: /healthz}
rules:
  - {name: login, rate: 5/m, burst: 5, match: {path: /login, method: POST}, refund_status: [2xx, 3xx]}
  - name: api
    rate: 10/s
    burst: 20
    key: header:X-Api-Key or ip
    tiers: {header: X-Plan, values: {gold: {rate: 100/s}, free: {rate: unlimited}}}
  - {name: keys, rate: 1/s, key: header:X-Api-Key or none}
  - {name: slots, concurrency: 3, store: false, shadow: true}
`

func TestTheTestsOfARuleFile(t *testing.T) {
	for test, want := range map[string]string{
		`{request: POST /login, client: 203.0.113.7, answer: 401, expect: {rules: [api, slots, login], times: 5, then: 429}}`: "",
		`{request: POST /login, answer: 302, expect: {times: 20, then: 429}}`:                                                 "",
		`{request: GET /healthz, answer: 204, expect: {rules: [], times: 1000}}`:                                              "",
		`{request: GET //login/../../x, expect: {status: 400}}`:                                                               "",
		`{request: GET /, headers: {X-Plan: free}, expect: {rules: slots, times: 1000}}`:                                      "",
		`{request: GET /, headers: {X-Api-Key: a, host: a.example}, expect: {rules: [api, keys, slots], then: 429}}`:          "",
		`{request: GET /, headers: {X-Plan: gold}, expect: {rules: api, times: 7, then: 429}}`: "want it counted by api, got api, slots|" +
			"request 8, after 7 times 200: want 429, got 200",
		`{request: GET /healthz, expect: {rules: api}}`:           "want it counted by api, got no rule",
		`{request: POST /login, answer: 500, expect: {times: 6}}`: "request 6: want 500, got 429 by login",
		`{request: GET /../x, expect: {then: 200}}`: "request 1: want 200, got 400 by weir itself: The request is malformed: the path of " +
			"its target goes above its root, at least to some servers",
	} {
		f, err := rulefile.Parse("weir.yaml", []byte(tried+"tests:\n  - "+test))
		require.NoError(t, err, test)
		var messages []string
		if err := runTests(f); err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				message, ok := strings.CutPrefix(line, "weir.yaml:13:5: test "+f.Tests[0].Request.Line+": ")
				assert.True(t, ok, line)
				messages = append(messages, message)
			}
		}
		assert.Equal(t, want, strings.Join(messages, "|"), test)
	}
}

func TestProgramRunsTheTestsOfARuleFile(t *testing.T) {
	program := build(t)
	good := file(t, "weir.yaml", tried+"tests: {request: GET /, expect: {times: 20, then: 429}}\n")
	assert.True(t, strings.HasPrefix(run(t, program, "", "check", good).stdout, good+" is good, and its test passes\n"))
	bad := file(t, "weir.yaml", tried+"tests: {request: GET /, expect: {times: 21}}\n")
	assert.Equal(t, result{1, "", bad + ":12:8: test GET /: request 21: want 200, got 429 by api\n" +
		"weir: error: " + bad + " has mistakes: 1\n"}, run(t, program, "", "check", bad))
	assert.Contains(t, run(t, program, "", "check", "--json", bad).stdout, `"good":false,"mistakes":[{"line":12,"column":8,`)

	assert.Equal(t, result{0, `GET /x from 203.0.113.7

rule login
  for     method POST, path /login
  not for this request, because of its path, method

rule api
  for     all requests
  key     ip:203.0.113.7
  limit   token bucket 100/s burst 20 for X-Plan: gold

rule keys
  for     all requests
  not for this request, because it has no key: header:X-Api-Key or none

rule slots
  for     all requests
  key     ip:203.0.113.7
  limit   3 at a time
  shadow  it refuses nothing

counted by api, slots
`, ""}, run(t, program, "", "check", bad, "--explain", "GET /x", "--client", "203.0.113.7", "--header", "x-plan: gold"))
	assert.Contains(t, run(t, program, "", "check", good, "--explain", "GET /healthz").stdout, "is exempt: no rule is for it")
	assert.Contains(t, run(t, program, "", "check", good, "--explain", "GET /", "--header", "X-Plan:free").stdout, "limit   unlimited")
	assert.Contains(t, run(t, program, "", "check", good, "--explain", "GET /a/../..").stdout, "is answered 400 before any rule is asked")
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--explain", "/login"}, `--explain "/login": want a method and a target`},
		{[]string{"--explain", "GET /", "--client", "me"}, `--client "me": want an address`},
		{[]string{"--explain", "GET /", "--header", "X-Plan"}, `--header "X-Plan": want a name and a value`},
		{[]string{"--header", "X-Plan: gold"}, "--client and --header are for --explain"},
	} {
		r := run(t, program, "", append([]string{"check", good}, c.arguments...)...)
		assert.Equal(t, 80, r.status, r.stderr)
		assert.Contains(t, r.stderr, c.want)
	}
}

// TestTheTestsOfTheDocument: the tests in the document pass. With a smaller burst they fail, as the document says. The
// explanation of a request in the document is what the program prints.
func TestTheTestsOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	section := string(text[bytes.Index(text, []byte("\n## Tests\n")):])
	_, yaml, _ := strings.Cut(section, "```yaml\n")
	yaml, _, _ = strings.Cut(yaml, "```")
	f, err := rulefile.Parse("weir.yaml", []byte(yaml))
	require.NoError(t, err)
	assert.NoError(t, runTests(f))
	smaller, err := rulefile.Parse("weir.yaml", []byte(strings.Replace(yaml, "burst: 5", "burst: 4", 1)))
	require.NoError(t, err)
	err = runTests(smaller)
	require.Error(t, err)
	assert.Contains(t, section, "\n    "+err.Error()+"\n")

	var out strings.Builder
	require.NoError(t, explain(&out, f, rulefile.TestRequest{Line: "GET /login", Client: netip.MustParseAddr("203.0.113.7")}))
	explained := strings.ReplaceAll("    "+strings.TrimSpace(strings.ReplaceAll(out.String(), "\n", "\n    ")), "    \n", "\n")
	assert.Contains(t, section, explained)
}
