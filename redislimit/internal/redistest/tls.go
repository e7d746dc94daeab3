//go:build unix

package redistest

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/weir-go/weir/internal/freeport"
)

// StartTLS starts a server that also listens with TLS, at the returned address. The arguments are the files of its
// certificate and key, and of the authority of clients' certificates.
func StartTLS(t testing.TB, certificate, key, authority string) (server *Server, address string) {
	t.Helper()
	port := freeport.Number(t)
	absolute := func(name string) string {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	server = start(t, false, "tls-port "+strconv.Itoa(port), "tls-cert-file "+absolute(certificate),
		"tls-key-file "+absolute(key), "tls-ca-cert-file "+absolute(authority), "tls-auth-clients yes")
	return server, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
