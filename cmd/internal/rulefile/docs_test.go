package rulefile

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/configuration.md")
	require.NoError(t, err)
	return string(text)
}

// TestTheExamplesOfTheDocument: the examples of docs/configuration.md load, and mean what the text says.
func TestTheExamplesOfTheDocument(t *testing.T) {
	examples := regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```").FindAllStringSubmatch(document(t), -1)
	require.Len(t, examples, 6)
	for _, example := range examples {
		_, err := Parse("weir.yaml", []byte(example[1]))
		require.NoError(t, err)
	}
	f, err := Parse("weir.yaml", []byte(examples[1][1]))
	require.NoError(t, err)
	require.Len(t, f.Rules, 4)
	assert.Equal(t, []string{"free", "paid"}, f.Rules[1].Tiers.Values)
	assert.True(t, f.Rules[3].Shadow)
	var out strings.Builder
	require.NoError(t, f.Describe(&out))
	assert.Equal(t, `listen    127.0.0.1:8080 (HTTP/1.1)
listen    127.0.0.1:8081 (HTTP/1.1 and HTTP/2 without TLS)
admin     127.0.0.1:9090, keys hashed
upstream  http://127.0.0.1:3001 for host static.example.com
upstream  http://127.0.0.1:3000
client    x-forwarded-for of 2 trusted proxies, otherwise the connection's address; IPv6 by /56
answer    headers ietf, body problem

rule everything
  for     all requests
  by      global
  limit   token bucket 5000/s burst 10000
  memory  26 MiB for 1,000,000 keys, then evict

rule api
  for     host api.example.com, path /v1/
  by      header:X-Api-Key or ip
  limit   token bucket 10/s burst 20
          token bucket 1/s burst 5 for X-Plan: free
          token bucket 100/s burst 200 for X-Plan: paid
  memory  51 MiB for 1,000,000 keys, then evict

rule failed-logins
  for     method POST, path /login
  by      ip
  limit   token bucket 5/m burst 5
  refund  on 2xx
  memory  26 MiB for 1,000,000 keys, then evict

rule search (shadow: counts, never refuses)
  for     path /users/{id}/search
  by      ip, path
  limit   sliding window 30/1m0s
  cost    the header X-Search-Cost, 1 without it, at most 10
  memory  26 MiB for 1,000,000 keys, then evict

4 rules, about 128 MiB of memory when the tables are full
`, out.String())
}

// TestTheExamplesOfOperations: the rule files in docs/operations.md load. The page also has files that begin with
// http:, which belong to other programs.
func TestTheExamplesOfOperations(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	checked := 0
	for _, example := range examples {
		if strings.HasPrefix(example[1], "http:") {
			continue
		}
		f, err := Parse("weir.yaml", []byte(example[1]))
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, f.Describe(&out))
		assert.Equal(t, f.Decide != nil, strings.Contains(out.String(), "decide    127.0.0.1:8090, for other proxies\n"))
		checked++
	}
	assert.Equal(t, 10, checked)
}

const beginOfRule = "rules: [{name: a, rate: 1/s, "

// unknownKeys has files with an unknown key, one for each kind of mapping.
var unknownKeys = []string{
	"zzzzzz: 1", "rules: [{zzzzzz: 1}]", beginOfRule + "match: {zzzzzz: 1}}]", beginOfRule + "tiers: {zzzzzz: 1}}]",
	beginOfRule + "cost: {zzzzzz: 1}}]", beginOfRule + "tokens: {zzzzzz: 1}}]", beginOfRule + "tokens: {count: {zzzzzz: 1}}}]", beginOfRule + "tiers: {values: {b: {zzzzzz: 1}}}}]", "listen: {zzzzzz: 1}",
	"listen: {tls: {zzzzzz: 1}}", "admin: {zzzzzz: 1}",
	"upstream: {zzzzzz: 1}", "client_ip: {zzzzzz: 1}", "response: {zzzzzz: 1}", "server: {zzzzzz: 1}",
	"store: {zzzzzz: 1}", "log: {zzzzzz: 1}", "decide: {zzzzzz: 1}", "redis: {zzzzzz: 1}", "upstream: {health: {zzzzzz: 1}}",
}

// TestEveryKeyIsDescribed: the document describes every key of a rule file. The test takes the keys from the messages
// about unknown keys.
func TestEveryKeyIsDescribed(t *testing.T) {
	text := document(t)
	for _, file := range unknownKeys {
		_, err := Parse("weir.yaml", []byte(file))
		keys := regexp.MustCompile(`unknown key "zzzzzz": want (.*)`).FindStringSubmatch(err.Error())
		require.NotNil(t, keys, err)
		for _, key := range regexp.MustCompile(`, | or `).Split(keys[1], -1) {
			assert.Contains(t, text, "`"+key+"`")
		}
	}
}

// tables matches the tables of the document that the program writes. The name of a table's section is before the table.
var tables = regexp.MustCompile(`(?m)^<!-- keys of (\w+) -->\n\n((?:\|.*\n)*)`)

// TestTheReferenceIsTheProgramS: docs/configuration.md has all tables of the program, unchanged.
func TestTheReferenceIsTheProgramS(t *testing.T) {
	text, want := document(t), Reference()
	seen := map[string]bool{}
	written := tables.ReplaceAllStringFunc(text, func(found string) string {
		name := tables.FindStringSubmatch(found)[1]
		require.Contains(t, want, name)
		seen[name] = true
		return "<!-- keys of " + name + " -->\n\n" + want[name]
	})
	assert.Len(t, seen, len(want), "a section has no table")
	if os.Getenv("WEIR_WRITE") != "" {
		require.NoError(t, os.WriteFile("../../../docs/configuration.md", []byte(written), 0o644))
		return
	}
	assert.True(t, written == text, "write it again: WEIR_WRITE=1 go test ./internal/rulefile -run TheProgramS")
}

// TestTheDefaultsOfTheDocument: the defaults in the document are the real defaults.
func TestTheDefaultsOfTheDocument(t *testing.T) {
	text := document(t)
	for _, set := range []string{
		"listen: 127.0.0.1:8080", "ambiguous_paths: match", "headers: ietf", "response: {body: problem}",
		"response: {retry_jitter: 0s}",
		"server: {read_header_timeout: 10s}", "server: {read_timeout: 0s}", "server: {write_timeout: 0s}",
		"server: {idle_timeout: 2m}", "server: {shutdown_timeout: 10s}", "server: {shutdown_delay: 0s}",
		"server: {max_header_bytes: 64KiB}", "server: {min_body_rate: 240}", "server: {max_waiting: 1000}",
		"log: {format: text}", "log: {level: info}", "log: {access: none}", "log: {refusals: none}",
		"client_ip: {ipv4_prefix: 32}", "client_ip: {ipv6_prefix: 64}", "client_ip: {from: socket}",
		"rules: [{name: a, rate: 1/s, key: ip}]", "rules: [{name: a, rate: 1/s, algorithm: token-bucket}]",
		"rules: [{name: a, rate: 1/s, burst: 1}]", "rules: [{name: a, rate: 1/s, cost: 1}]",
		"rules: [{name: a, rate: 1/s, shadow: false}]", "rules: [{name: a, rate: 1/s, max_keys: 1000000}]",
		"rules: [{name: a, rate: 1/s, overflow: evict}]", "rules: [{name: a, rate: 1/s, aligned: false}]",
		"redis: {address: 127.0.0.1:1, longest: 624h}", "redis: {address: 127.0.0.1:1, max_keys: 1000000}",
		"redis: {address: 127.0.0.1:1, overflow: evict}", "redis: {address: 127.0.0.1:1, idle_timeout: 0s}",
		"redis: {address: 127.0.0.1:1, allow_remote: false}",
	} {
		plain := "rules: [{name: a, rate: 1/s}]"
		if !strings.HasPrefix(set, "rules") {
			set += "\n" + plain
		}
		pair := regexp.MustCompile(`(\w+): ([^{},\n\]]+)[}\]]*$`).FindStringSubmatch(strings.TrimSuffix(set, "\n"+plain))
		if strings.HasPrefix(set, "redis") {
			plain = "redis: 127.0.0.1:1\n" + plain
		}
		want, err := Parse("weir.yaml", []byte(plain))
		require.NoError(t, err)
		got, err := Parse("weir.yaml", []byte(set))
		require.NoError(t, err)
		want.Rules[0].Line = got.Rules[0].Line
		assert.Equal(t, want, got, set)
		assert.Regexp(t, "\\| `"+pair[1]+"` \\|.*`"+regexp.QuoteMeta(pair[2])+"`", text, set)
	}
}
