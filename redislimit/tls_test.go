//go:build unix

package redislimit_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// issue writes a certificate for 127.0.0.1 and its key to files, self-signed if authority is nil.
func issue(t *testing.T, dir, name string, authority *tls.Certificate) *tls.Certificate {
	return issueFor(t, dir, name, authority, time.Now().Add(time.Hour))
}

func issueFor(t *testing.T, dir, name string, authority *tls.Certificate, end time.Time) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		IsCA: authority == nil, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+file), pem.EncodeToMemory(block), 0o600))
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A store uses a private certificate authority, and requires certificates from its clients.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	authority := issue(t, dir, "authority", nil)
	issue(t, dir, "server", authority)
	client := issue(t, dir, "client", authority)
	file := func(name string) string { return filepath.Join(dir, name) }
	_, address := redistest.StartTLS(t, file("server.pem"), file("server.key"), file("authority.pem"))

	pool := x509.NewCertPool()
	pool.AddCert(authority.Leaf)
	good := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*client}}
	c, err := redislimit.Open(t.Context(), "rediss://"+address, redislimit.TLS(good), redislimit.Timeout(10*time.Second))
	require.NoError(t, err)
	defer c.Close()
	l := limiter(t, c, slow(), redislimit.OnLoss(redislimit.FailClosed))
	assert.True(t, take(t, l, "k", 1).Allowed)

	for name, bad := range map[string]*tls.Config{
		"another authority": {Certificates: good.Certificates}, "no certificate": {RootCAs: pool},
	} {
		_, err = redislimit.Open(t.Context(), "rediss://"+address, redislimit.TLS(bad))
		assert.Error(t, err, name)
	}
	// The server reports only after the handshake whether it accepts a client's certificate.
	other := issue(t, dir, "other authority", nil)
	for range 20 {
		for want, certificates := range map[string][]tls.Certificate{"unknown": {*issue(t, dir, "stranger", other)}, "certificate required": nil} {
			shown := &tls.Config{RootCAs: pool, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if certificates == nil {
					return new(tls.Certificate), nil
				}
				return &certificates[0], nil
			}}
			_, err = redislimit.Open(t.Context(), "rediss://"+address, redislimit.TLS(shown))
			require.ErrorIs(t, err, redislimit.ErrStore)
			require.ErrorContains(t, err, "remote error: tls: "+want)
		}
	}
	_, err = redislimit.Open(t.Context(), "redis://"+address, redislimit.TLS(good))
	assert.ErrorContains(t, err, "TLS: the address does not begin with rediss://")
}
