//go:build unix

package redistest

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/weir-go/weir/internal/freeport"
)

// StartTLS starts a server that also listens with TLS on another port. The parameters certificate and key are the paths
// of the server's files. The parameter authority is the path of the certificate of an authority, and clients need
// certificates that this authority has signed. StartTLS returns the address of the TLS port.
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
