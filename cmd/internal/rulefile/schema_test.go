package rulefile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// compiledSchema returns a function that checks whether a file fits the schema.
func compiledSchema(t *testing.T) func(text string) error {
	t.Helper()
	out, err := Schema()
	require.NoError(t, err)
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("weir.json", parsed))
	compiled, err := compiler.Compile("weir.json")
	require.NoError(t, err)
	return func(text string) error {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return err
		}
		asJSON, err := json.Marshal(value) // so that it has the types that the validator knows
		if err != nil {
			return err
		}
		again, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		if err != nil {
			return err
		}
		return compiled.Validate(again)
	}
}

func TestTheSchemaOfTheRepositoryIsTheProgramS(t *testing.T) {
	committed, err := os.ReadFile("../../../docs/weir.schema.json")
	require.NoError(t, err)
	out, err := Schema()
	require.NoError(t, err)
	if os.Getenv("WEIR_WRITE") != "" {
		require.NoError(t, os.WriteFile("../../../docs/weir.schema.json", out, 0o644))
		return
	}
	assert.True(t, bytes.Equal(out, committed), "write it again: WEIR_WRITE=1 go test ./internal/rulefile -run TheProgramS")
}

// goodFiles returns all rule files of the documents, and all good files of the tests.
func goodFiles(t *testing.T) []string {
	t.Helper()
	good := []string{full}
	documents, err := filepath.Glob("../../../*.md")
	require.NoError(t, err)
	more, err := filepath.Glob("../../../docs/*.md")
	require.NoError(t, err)
	for _, name := range append(documents, more...) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, example := range regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```").FindAllSubmatch(text, -1) {
			if strings.Contains(string(example[1]), "rules:") {
				good = append(good, string(example[1]))
			}
		}
	}
	return append(good, allKeys...)
}

func TestGoodFilesFitTheSchema(t *testing.T) {
	validate := compiledSchema(t)
	good := goodFiles(t)
	for _, text := range good {
		_, err := Parse("weir.yaml", []byte(text))
		require.NoError(t, err, text)
		assert.NoError(t, validate(text), text)
	}
	assert.Greater(t, len(good), 10)
}

// allKeys has keys and values that are in no other good file. If a key is missing, TestEveryKeyIsTried fails.
var allKeys = []string{
	"x-own: {a: 1}\nrules: {name: a, rate: 0}",
	"rules: [{name: a, rate: unlimited}, {name: 1, rate: 10/1500ms, burst: 3, max_wait: 1m, overflow: admit}]",
	"rules: [{name: a, rate: 1/s, cost: {header: X-A, max: 3}, burst: 3, refund_status: [404, 2xx], shadow: true}]",
	"rules: [{name: a, rate: 3/d, algorithm: fixed-window, aligned: true, key: [header:A or cookie:b or none, query:c, host]}]",
	"rules: [{name: a, rate: 1/s, tiers: {header: P, values: {a: {rate: 0}, b: {burst: 3}}}}]",
	"rules: [{name: a, rate: 1/s, match: {host: \"*.a.example\", method: [GET, PURGE], header: {A: 1, B: [x, \"*\"]}, " +
		"query: {q: true}, client: ::1, case: sensitive, extension: exact, not: [{path: /a}, {client: 10.0.0.0/8}]}}]",
	"listen: [{address: unix:/a, mode: 0660}, {address: unix:/b, mode: \"666\"}, \"[::1]:80\", :0]\n" +
		"admin: {address: unix:/c, pprof: true, keys: off, hosts: a.example, token_file: a, read_token_file: b}\nrules: {name: a, rate: 1/s}",
	"upstream: {url: [\"https://a\", unix:/b], health: {path: /a, interval: 1h30m, passes: 1}, " +
		"pass_headers: X_A, keep_host: true, ignore_client_abort: true}\nrules: {name: a, rate: 1/s}",
	"server: {read_timeout: 0, write_timeout: 0s, max_header_bytes: 1 MiB, min_body_rate: 0, max_connections: 0, " +
		"max_connections_per_client: 0, send_timeout: 0}\n" +
		"log: {format: json, level: debug, access: all, refusals: 1/100}\nrules: {name: a, rate: 1/s}",
	"store: {url: \"redis://a\", on_loss: share, share: 10%, mode: strict, keys: full, nodes: 3, timeout: 1s}\n" +
		"rules: [{name: a, rate: 1/s, store: false}]",
	"decide: {address: unix:/d, mode: 600}\ntrusted_proxies: [10.0.0.0/8, \"::1\"]\nclient_ip: {from: header:X-A, " +
		"ipv6_prefix: 56}\nexempt: {path: /a}\nrules: {name: a, rate: 1/s}",
	"redis: unix:/e",
	"redis: {address: :6380, password_file: a, longest: 8760h, limits: {a: 1/s, b: {rate: 1000/30d, burst: 3}, c: {rate: 5/s, algorithm: fixed-window, aligned: true}, d: {rate: 5/month, algorithm: fixed-window, zone: UTC}}, max_keys: 5, overflow: admit, idle_timeout: 1m, negative_quantities: true, in_flight: 1m}",
	"redis: {address: \"[::]:6380\", tls: {cert: a, key: b}, password_env: A_1, allow_remote: true}\nrules: {name: a, rate: 1/s}",
	"rules: [{name: a, rate: 1/s, key: global, spread: true}]",
	"rules: [{name: a, rate: 1/s, quota: {file: a.csv}}, {name: b, rate: 0, key: [ip, host], quota: {file: b.json, by: header:X-A or none, " +
		"unknown: refuse, max: 10, plans: {a: {rate: 5/s, burst: 7}, b: {rate: unlimited}, c: {rate: 2/s}}}}]",
	"trusted_proxies: 10.0.0.1\nstore: redis://a\nrules: [{name: a, rate: 1/s, store: false, quota: {header: X-RateLimit-Policy, item: b, unknown: refuse, max: 10}}, " +
		"{name: b, rate: 1/s, store: false, quota: {hash: plans, every: 10s, by: ip, plans: {a: {rate: 5/s}}}}]",
	"rules: [{name: a, rate: 1/s, tokens: {api: openai, count: {input: 0.15, output: 3}, estimate: learned, default_output: 100, " +
		"abort: drain 30s, unknown: free, ask_usage: true, max_body: 1MiB, fields: openai}}]",
	"rules: [{name: a, rate: 1/s, tokens: {count: output, estimate: 500, abort: delivered}}, " +
		"{name: b, rate: 1/s, cost: {estimate: 500, from: \"json:usage.total\"}}, {name: c, rate: 1/s, tokens: {}}]",
	"rules: [{name: a, rate: 1000000/month, algorithm: fixed-window, zone: Europe/Berlin}, {name: b, rate: 5/day, algorithm: fixed-window}, " +
		"{name: c, rate: 1/s, tokens: {clamp: true, scale: 1000, count: {input: 3, models: {\"gpt-4*\": {output: 2}}, output: 1}}}]",
	"server: {max_connections: \"5\", max_header_bytes: \"2048\"}\nrules: [{name: a, rate: 1/s, burst: \"5\", match: {method: 5}}]",
	"ambiguous_paths: refuse\nadmin: {address: unix:/a, mode: 600, allow_remote: false}\nclient_ip: {ipv4_prefix: 24}\n" +
		"cors: {origins: \"https://a.example\", headers: X-A, expose: X-B, max_age: 1m}\nrules: {name: a, rate: 1/s}",
	"decide: {address: \"127.0.0.1:9\", reuse_port: true}\ntrusted_proxies: 10.0.0.1\nlisten: {address: :443, tls: {cert: a, key: b}}\n" +
		"redis: {address: \"127.0.0.1:6380\", reuse_port: true}\nrules: {name: a, rate: 1/s}",
	"redis: {address: unix:/a, mode: 600}\nrules: {name: a, rate: 1/s}",
	"exempt: {host: a.example, header: {A: b}, query: {q: r}, path: [{prefix: /a}, {regex: ^/b}]}\nrules: {name: a, rate: 5/s, " +
		"match: {path: [{prefix: /a}, {regex: ^/b}]}, cost: {header: X-A, default: 2, max: 3}}",
	"routes: {upstream: \"https://a\", match: {header: {A: b}, method: GET, path: [{prefix: /a}, {regex: ^/b}]}}\nrules: {name: a, rate: 1/s}",
	"response: {status: 503, content_type: text/plain, template: no}\nrules: {name: a, rate: 1/s, response: {headers: {X-A: b}}}",
	"rules: [{name: a, concurrency: 5, tiers: {header: P, values: {a: {concurrency: 9}}}}, " +
		"{name: b, rate: 1/s, tokens: {count: {input: 1, models: {m: {cache_write: 2}}}}}]",
	"server: {max_waiting: 5, read_header_timeout: 1s, shutdown_timeout: 2s}\nrules: {name: a, rate: 1/s}\n" +
		"upstream: {url: \"https://a\", connect_timeout: 1s, health: {path: /a, timeout: 1s, fails: 2}}",
	"store: {url: \"rediss://a\", ca: a, certificate: b, certificate_key: c, password_file: d, prefix: p, partitions: 8, " +
		"secret: a secret of 24 characters}\nrules: {name: a, rate: 1/s}",
	"rules: {name: a, rate: 1/s}\ntests: {request: GET /a, expect: {status: 200}}",
	"x-a: &a {rate: 1/s}\nrules: [{<<: *a, name: a}]",
}

// beyondSchema matches errors that a schema cannot find. They are about several keys, numbers within texts, and names.
var beyondSchema = regexp.MustCompile(strings.Join([]string{
	"is taken by the listener", "to fill, and longest is", "on the table.s clock", "parts of a microsecond", "public listener's", "admin listener's", "for decisions, ", "no rules", "occurs twice",
	"can be reached from other machines", "speaks HTTP/2", "leave one of the two out", "leave it out", "bits after the prefix",
	"needs trusted_proxies", "no store", "begins with a zero",
	"a second document", "unknown tag", "above max", "above the limit",
	"needs a token_file", "wants a whole number of requests", `rate "`, "limit of .* tokens", "mode: \"440\"",
	"path of a socket", "has no host", "is not the name of", "Host is not among the headers", "never used",
	"cannot be joined", "is never passed on", "want 1 to 64", "a fragment", "user name and password", "not a URL",
	"have one (period|rate)", "has another meaning", "one connection alone", "is the header of client_ip", "hyphens, such as", "want an address or a range", "ranges of IPv4", "want a name such as", "xn--", "without scheme and port", "the port (is|[0-9]+ is not valid)",
	"want .* to .*, got", "whole seconds", "segment|segments", "escapes", "neither rate nor burst", "a query or fragment",
	"unknown key \".*:", "unknown method", "a method in capitals", "not at the end",
	"burst", "tier", "store", "key: query", "want the name", "a pattern begins", "patterns have",
	"a file cannot have limits by", "want one of them", "keeps its rate", "leaves nothing to count", "the key has .* parts", "the name is a rate", "leave this out", "leave out decide", "more than 64 characters", "error parsing regexp", `origins: \*`, "with credentials", "own port", "spread", "has a key of", "either from the request or", "every weight is 0", "of the calendar", "clamp", "name of a model", "tz database",
}, "|"))

// TestFilesWithMistakesDoNotFitTheSchema: a file with a mistake does not fit the schema, unless beyondSchema matches
// the error.
func TestFilesWithMistakesDoNotFitTheSchema(t *testing.T) {
	validate := compiledSchema(t)
	files, errors := mistakes(t)
	refused := 0
	for i, file := range files {
		if validate(file) != nil {
			refused++
			continue
		}
		for line := range strings.Lines(errors[i]) {
			assert.Regexp(t, beyondSchema, line, "the schema takes this file:\n%s", file)
		}
	}
	assert.Greater(t, refused, len(files)*55/100)
	t.Logf("%d of %d files with mistakes do not fit", refused, len(files))
}

// TestTheSchemaHasEveryKey: each mapping of the schema has the keys that the decoder's messages list.
func TestTheSchemaHasEveryKey(t *testing.T) {
	out, err := Schema()
	require.NoError(t, err)
	var root map[string]any
	require.NoError(t, json.Unmarshal(out, &root))
	var objects [][]string // the keys of all mappings of the schema, sorted
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if p, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == false {
				keys := make([]string, 0, len(p))
				for key := range p {
					keys = append(keys, key)
				}
				slices.Sort(keys)
				objects = append(objects, keys)
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(root)
	for _, file := range unknownKeys {
		_, err := Parse("weir.yaml", []byte(file))
		said := regexp.MustCompile(`unknown key "zzzzzz": want (.*)`).FindStringSubmatch(err.Error())
		require.NotNil(t, said, err)
		keys := slices.DeleteFunc(regexp.MustCompile(`, | or `).Split(said[1], -1),
			func(key string) bool { return key == extensionKeys })
		slices.Sort(keys)
		assert.Contains(t, objects, keys, file)
	}
}
