package rulefile

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin"
)

func TestWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"trusted_proxies: 10.0.0.0/8": "",
		"trusted_proxies: 0.0.0.0/0": "trusted_proxies: 0.0.0.0/0 is every address: any client can then claim any address in " +
			"X-Forwarded-For, and has a new bucket for each",
		"trusted_proxies: \"::/0\"\nclient_ip: {from: \"header:X-Real-IP\"}": "trusted_proxies: ::/0 is every " +
			"address: any client can then claim any address in X-Real-Ip, and has a new bucket for each",
		"listen: \":8080\"\nupstream: http://127.0.0.1:8080": "upstream: http://127.0.0.1:8080 is where weir itself " +
			"listens, at " +
			":8080: requests would go round until they time out",
		"listen: 127.0.0.1:80\nupstream: http://localhost": "upstream: http://localhost is where weir itself " +
			"listens, at " +
			"127.0.0.1:80: requests would go round until they time out",
		"listen: localhost:8080\nroutes: [{match: {path: /}, upstream: \"http://127.0.0.1:8080/x\"}]": "upstream: " +
			"http://127.0.0.1:8080/x is where weir itself listens, at localhost:8080: requests would go round until " +
			"they time out",
		"listen: \":8080\"\nupstream: http://192.0.2.1:8080": "",
		"listen: 192.0.2.1:8080\nupstream: http://192.0.2.1:8080/base": "upstream: http://192.0.2.1:8080/base is " +
			"where weir " +
			"itself listens, at 192.0.2.1:8080: requests would go round until they time out",
		"listen: 127.0.0.1:8080\nupstream: http://127.0.0.1:8081": "",
		// If the server does not get the Host header, this exception only helps clients to avoid the limit.
		"upstream: http://127.0.0.1:1\nexempt: {host: b.example}": "exempt: host: any client can send b.example, and " +
			"http://127.0.0.1:1 answers it like any other because it does not get the host: set keep_host, or a route for the host",
		"upstream: {url: http://127.0.0.1:1, keep_host: true}\nexempt: {host: b.example}": "",
		"exempt: {host: b.example}": "",
		"routes: [{match: {host: \"*.example\"}, upstream: http://127.0.0.1:1}]\nexempt: {host: b.example}": "",
		"routes: [{match: {host: [a.example, b.example]}, upstream: http://127.0.0.1:1}]\n" +
			"upstream: http://127.0.0.1:2\nexempt: {host: b.example}": "",
		"routes: [{match: {host: b.example, path: /a}, upstream: http://127.0.0.1:1}]\n" +
			"upstream: http://127.0.0.1:2\nexempt: {host: b.example}": "exempt: host: any client can send b.example, and " +
			"http://127.0.0.1:2 answers it like any other because it does not get the host: set keep_host, or a route for the host",
		"routes: [{match: {path: /a}, upstream: http://127.0.0.1:1}]\nexempt: {host: b.example}": "exempt: host: any client can send b.example, and http://127.0.0.1:1 answers it like any other because it does not get the host: set keep_host, or a route for the host",
	} {
		f, err := Parse("weir.yaml", []byte(text+"\nrules: [{name: a, rate: 1/s}]"))
		require.NoError(t, err, text)
		if want == "" {
			assert.Empty(t, f.Warnings(), text)
		} else {
			assert.Equal(t, []string{want}, f.Warnings(), text)
		}
	}
}

// TestWarningsOfLimitsThatAnybodySays: if every peer is a trusted proxy, every client can write the header with the
// limits.
func TestWarningsOfLimitsThatAnybodySays(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("trusted_proxies: [10.0.0.0/8, \"::/0\"]\nrules: [{name: a, rate: 1/s, quota: {header: X-Limit}}, {name: b, rate: 1/s}]"))
	require.NoError(t, err)
	assert.Equal(t, []string{
		"trusted_proxies: ::/0 is every address: any client can then claim any address in X-Forwarded-For, and has a new bucket for each",
		"trusted_proxies: ::/0 is every address: any client can then set its limit under the rule a in X-Limit",
	}, f.Warnings())
}

// TestWarningsOfPrices: a model that is not listed must not be cheaper than a listed model, because the client writes
// the name of the model.
func TestWarningsOfPrices(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("rules: [{name: a, rate: 1/s, "+
		"tokens: {count: {input: 3, output: 15, models: {\"big*\": {output: 16}, small: {input: 1}, even: {input: 3, output: 15}}}}}]"))
	require.NoError(t, err)
	assert.Equal(t, []string{`rule a: count: the model "big*" has higher weights than an unlisted model, and clients choose the name of the model: ` +
		"give the rule's own weights the highest numbers"}, f.Warnings())
}

// TestWarningsOfRulesByHost: if the server does not get a part of the request, a client can avoid a rule with this
// part.
func TestWarningsOfRulesByHost(t *testing.T) {
	const upstream = "upstream: http://127.0.0.1:1\n"
	for rule, want := range map[string]string{
		"match: {host: a.example}": "rule a: match: host: a client that sends another host avoids the limit, and " +
			"http://127.0.0.1:1 answers it in the same way because it does not get the host: set keep_host, or a route for the host",
		"match: {not: {host: [a.example, \"*.b.example\"]}}": "rule a: not: host: any client can send a.example or " +
			"*.b.example, and http://127.0.0.1:1 answers it like any other because it does not get the host: set keep_host, or a route for the host",
		"key: [ip, host]": "rule a: key: host: each host that a client sends is a bucket of its own, and http://127.0.0.1:1 answers all in the same way because it does not get the host: set keep_host, or a route for the host",
	} {
		rules := "rules: [{name: a, rate: 1/s, " + rule + "}]"
		f, err := Parse("weir.yaml", []byte(upstream+rules))
		require.NoError(t, err)
		assert.Equal(t, []string{want}, f.Warnings(), rule)
		f, err = Parse("weir.yaml", []byte("decide: 127.0.0.1:1\ntrusted_proxies: 127.0.0.1\n"+rules))
		require.NoError(t, err)
		assert.Empty(t, f.Warnings(), "the proxy that asks goes by the host")
	}
}

// TestWarningsOfKeysThatAreNotPassedOn: a client can write any value into a header that no server gets.
func TestWarningsOfKeysThatAreNotPassedOn(t *testing.T) {
	warnings := func(text string) []string {
		f, err := Parse("weir.yaml", []byte(text))
		require.NoError(t, err)
		return f.Warnings()
	}
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "X_token"} {
		assert.Equal(t, []string{"rule a: key: header:" + name + ": any client can send it, each value is a bucket of its own, and upstreams do not get it: for addresses write ip, with trusted_proxies and client_ip"},
			warnings("rules: [{name: a, rate: 1/s, key: [path, header:"+name+" or ip]}]"))
	}
	const other = ", {name: b, rate: 1/s}]"
	assert.Empty(t, warnings("rules: [{name: a, rate: 1/s, key: header:X-Api-Key}"+other))
	assert.Empty(t, warnings("upstream: {url: \"http://a.example\", pass_headers: X_Token}\n"+
		"rules: [{name: a, rate: 1/s, key: header:X_Token}"+other))
}

// TestAdminAsAnAddress: an admin listener can be just an address, as a listener for clients can.
func TestAdminAsAnAddress(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("admin: 127.0.0.1:9090\nrules: [{name: a, rate: 1/s}]"))
	require.NoError(t, err)
	assert.Equal(t, &Admin{Address: "127.0.0.1:9090", Keys: admin.KeysHashed}, f.Admin)
}
