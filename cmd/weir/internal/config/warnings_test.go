package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/admin"
)

func TestWarnings(t *testing.T) {
	for text, want := range map[string]string{
		"trusted_proxies: 10.0.0.0/8": "",
		"trusted_proxies: 0.0.0.0/0": "trusted_proxies: 0.0.0.0/0 is every address: any client can then say in " +
			"X-Forwarded-For which address it has, and has a new bucket for each",
		"trusted_proxies: \"::/0\"\nclient_ip: {from: \"header:X-Real-IP\"}": "trusted_proxies: ::/0 is every " +
			"address: any " +
			"client can then say in X-Real-Ip which address it has, and has a new bucket for each",
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

// An address alone is an admin listener, as it is one for clients.
func TestAdminAsAnAddress(t *testing.T) {
	f, err := Parse("weir.yaml", []byte("admin: 127.0.0.1:9090\nrules: [{name: a, rate: 1/s}]"))
	require.NoError(t, err)
	assert.Equal(t, &Admin{Address: "127.0.0.1:9090", Keys: admin.KeysHashed}, f.Admin)
}
