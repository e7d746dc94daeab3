package rulefile

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/admin"
)

func TestFlagsReadWhatFilesDo(t *testing.T) {
	key, err := ParseKey("header:x-api-key or cookie:id")
	require.NoError(t, err)
	assert.Equal(t, "header:X-Api-Key or cookie:id or ip", key.String())
	address, err := ParseAddress(":8080")
	require.NoError(t, err)
	assert.Equal(t, ":8080", address)
	upstream, err := ParseUpstream("http://127.0.0.1:3000/a")
	require.NoError(t, err)
	assert.Equal(t, "/a", upstream.Targets[0].URL.Path)
	page, err := ParseAdmin("localhost:9090")
	require.NoError(t, err)
	assert.Equal(t, &Admin{Address: "localhost:9090", Keys: admin.KeysHashed}, page)
	proxies, err := ParseProxies("10.0.0.0/8")
	require.NoError(t, err)
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, proxies)
}

func TestFlagsRefuseWhatFilesDo(t *testing.T) {
	for want, err := range map[string]error{
		`unknown key "cookie": want ip, header:NAME, cookie:NAME, query:NAME, path, method, host or global`:             failure(ParseKey("cookie")),
		`Host is not among the headers: use host`:                                                                       failure(ParseKey("header:host")),
		`address: "8080": want host:port; write for example 127.0.0.1:8080, or :8080 for all addresses of this machine`: failure(ParseAddress("8080")),
		`upstream: "http://me:xxxxx@host/": a user name and password in the URL are not passed on: leave them out`:      failure(ParseUpstream("http://me:secret@host/")),
		`admin: :9090 can be reached from other machines: use 127.0.0.1, or write allow_remote: true`:                   failure(ParseAdmin(":9090")),
		`trusted_proxies: "10.0.0.1/8" has bits after the prefix: did you mean "10.0.0.0/8"?`:                           failure(ParseProxies("10.0.0.1/8")),
	} {
		assert.EqualError(t, err, want)
	}
}

func failure[T any](_ T, err error) error { return err }
