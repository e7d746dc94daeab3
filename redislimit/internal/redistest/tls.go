//go:build unix

package redistest

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"
)

// StartTLS starts a server that speaks TLS on another port, too, with the certificate and key of two files, and wants
// certificates of clients by the authority of a third one. It returns the address of that port.
func StartTLS(t testing.TB, certificate, key, authority string) (server *Server, address string) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
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
