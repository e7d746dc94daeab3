package rulefile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDoubts: files that do not do what they seem to do get warnings, and other files get none.
func TestDoubts(t *testing.T) {
	const unlimited = "rule vip: rate: unlimited: it does not turn off other rules, and a may limit the same requests: write what it matches under exempt, or under not of the other rule"
	for text, want := range map[string]string{
		"rules: [{name: vip, rate: unlimited, match: {client: 10.0.0.1}}, {name: a, rate: 1/s}]":                                   unlimited,
		"rules: [{name: a, rate: 1/s, match: {path: /v1/}}, {name: vip, rate: unlimited, match: {path: \"/{x}\"}}]":                unlimited,
		"rules: [{name: vip, rate: unlimited, match: {client: 10.0.0.1}}, {name: a, rate: 1/s, match: {not: {client: 10.0.0.1}}}]": "",
		"rules: [{name: vip, rate: unlimited, match: {path: /a}}, {name: a, rate: 1/s, match: {path: /b}}]":                        "",
		"rules: [{name: vip, rate: unlimited, match: {method: PUT}}, {name: a, rate: 1/s, match: {method: POST}}]":                 "",

		"exempt: {path: /}": "exempt: path: / is every path, so no request is limited: write /{$} for that page alone",
		"rules: [{name: a, rate: 1/s, match: {not: {path: [/, /a]}}}]": "rule a: not: path: / is every path, so no request is " +
			"limited: write /{$} for that page alone",
		"exempt: {path: {prefix: /}}":                                      "exempt: path: / is every path, so no request is limited: write /{$} for that page alone",
		"exempt: {path: \"/{$}\"}":                                         "",
		"rules: [{name: a, rate: 1/s, match: {path: {regex: \"^/:x$\"}}}]": "",
		"rules: [{name: a, rate: 1/s, match: {path: {prefix: /a}}}, {name: b, rate: 1/s, match: {path: /a/b}}]": "",
		"exempt: {path: /, method: HEAD}":                    "",
		"exempt: {header: {X-Probe: a}}":                     "exempt: header X-Probe: any client can send it to avoid the limit: add the client it comes from, such as client: 10.0.0.0/8",
		"exempt: {query: {probe: a}}":                        "exempt: query probe: any client can send it to avoid the limit: add the client it comes from, such as client: 10.0.0.0/8",
		"exempt: {header: {X-Probe: a}, client: 10.0.0.0/8}": "",

		"rules: [{name: a, rate: 1/s, key: [ip, \"header:X-Api-Key\"]}, {name: b, rate: 1/s, key: \"cookie:id or none\"}]": "key: a client that makes up values of header:X-Api-Key and cookie:id has a new bucket for each, and no other rule limits it: add a rule with key: ip, or pass weir only requests whose header:X-Api-Key and cookie:id were checked",
		"rules: [{name: a, rate: 1/s, key: \"header:X-Api-Key\"}, {name: b, rate: 1/s, match: {path: /a}}]":                "",
		"rules: [{name: a, rate: 1/s, key: \"header:X-Api-Key\"}, {name: b, rate: 1/s, key: [ip, path]}]":                  "",

		"rules: [{name: a, rate: 1/s, match: {path: \"/users/:id/x\"}}]":                                 "rule a: match: path: /users/:id/x is only that text: write {id} for any segment",
		"exempt: {path: \"/users/<int:id>\"}":                                                            "exempt: path: /users/<int:id> is only that text: write {id} for any segment",
		"rules: [{name: a, rate: 1/s, match: {path: \"/a:b/<x\", header: {Accept: \"*/*\", X: \"*\"}}}]": "",
		"rules: [{name: a, rate: 1/s, match: {header: {User-Agent: \"*curl*\"}}}]": "rule a: match: header User-Agent: \"*curl*\" " +
			"is only that value: values are not patterns, and only a single * means any",
		"routes: [{match: {path: \"/:x\"}, upstream: \"http://a\"}]": "route 1: path: /:x is only that text: write {x} for any segment",

		"rules: [{name: a, rate: 1/s, match: {path: /api}}, {name: b, rate: 1/s, match: {path: /api/login}}]": "rule a: path: /api " +
			"is only that page, and the file has paths below it: write /api/ for all paths that begin with it, or /api/{$} for the page",
		"routes: [{match: {path: /api/}, upstream: \"http://a\"}]\nrules: [{name: a, rate: 1/s, match: {path: /api}}]": "rule a: " +
			"path: /api is only that page, and the file has paths below it: write /api/ for all paths that begin with it, or /api/{$} for the page",
		"rules: [{name: a, rate: 1/s, match: {path: [/api, /api/]}}]":                                             "",
		"rules: [{name: a, rate: 1/s, match: {path: /api}}, {name: b, rate: 1/s, match: {path: /apis/login}}]":    "",
		"rules: [{name: a, rate: 1/s, match: {path: \"/api/{$}\"}}, {name: b, rate: 1/s, match: {path: /api/x}}]": "",

		"rules: [{name: a, rate: 1/s, refund_status: [2xx, 3xx, 4xx, 5xx]}]": "rule a: refund_status: every answer has one of these, so every request gets its tokens back and the rule limits nothing: leave out the statuses that should count",
		"rules: [{name: a, rate: 1/s, refund_status: [2xx, 3xx, 5xx]}]":      "",

		"routes: [{match: {path: /a/}, upstream: \"http://a\"}, {match: {path: /a/b}, upstream: \"http://b\"}]": "route 2: no request reaches it, because route 1, for path /a/, gets all of them: move it before that route",
		"routes: [{match: {host: \"*.a\"}, upstream: \"http://a\"}, {match: {host: \"*.a\", method: PUT}, upstream: \"http://b\"}]": "route 2: " +
			"no request reaches it, because route 1, for host *.a, gets all of them: move it before that route",
		"routes: [{match: {path: /a/b}, upstream: \"http://a\"}, {match: {path: /a/}, upstream: \"http://b\"}]":                "",
		"routes: [{match: {path: /a/, host: a}, upstream: \"http://a\"}, {match: {path: /a/}, upstream: \"http://b\"}]":        "",
		"routes: [{match: {path: /a/, header: {X: y}}, upstream: \"http://a\"}, {match: {path: /a/}, upstream: \"http://b\"}]": "",
	} {
		file := text
		if !strings.Contains(text, "rules:") {
			file += "\nrules: [{name: default, rate: 1/s}]"
		}
		f, err := Parse("weir.yaml", []byte(file))
		require.NoError(t, err, text)
		if want == "" {
			assert.Empty(t, f.Warnings(), text)
		} else {
			assert.Equal(t, []string{want}, f.Warnings(), text)
		}
	}
}

func TestMemoryWarning(t *testing.T) {
	for text, want := range map[string]string{
		"[{name: a, rate: 1/s}]": "",
		"[{name: a, algorithm: sliding-log, rate: 4000/h, max_keys: 10000000}, {name: b, rate: 1/s}]": "memory: the limits take 497 GiB when their tables are full, 497 GiB of it for rule a: lower max_keys, or use algorithm: sliding-window",
		"[{name: a, rate: 1/s, max_keys: 2000000000}]": "memory: the limits take 50 GiB when their tables are full, 50 GiB of it for rule a: " +
			"lower max_keys",
	} {
		f, err := Parse("weir.yaml", []byte("rules: "+text))
		require.NoError(t, err)
		assert.Equal(t, want, f.MemoryWarning())
	}
}
