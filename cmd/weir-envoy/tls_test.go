package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.file = filepath.Join(t.TempDir(), "ca.pem")
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	require.NoError(a.t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func (a *authority) sign(name string) (certificate, key string) {
	return a.signUntil(name, time.Now().Add(time.Hour))
}

// signUntil does the same as sign, but the caller chooses the end of the certificate's validity.
func (a *authority) signUntil(name string, end time.Time) (certificate, key string) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &own.PublicKey, a.key)
	require.NoError(a.t, err)
	directory := a.t.TempDir()
	certificate, key = filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	a.write(certificate, "CERTIFICATE", der)
	text, err := x509.MarshalECPrivateKey(own)
	require.NoError(a.t, err)
	a.write(key, "EC PRIVATE KEY", text)
	return certificate, key
}

// TestMutualTLS: a client is answered only if it has a certificate of the CA with the right name.
func TestMutualTLS(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	certificate, key := ca.sign("weir.test")
	dial := func(a *authority, name string) []grpc.DialOption {
		settings := &tls.Config{ServerName: "weir.test", RootCAs: x509.NewCertPool()}
		settings.RootCAs.AddCert(ca.cert)
		if name != "" {
			pair, err := tls.LoadX509KeyPair(a.sign(name))
			require.NoError(t, err)
			settings.Certificates = []tls.Certificate{pair}
		}
		return []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(settings))}
	}
	r := start(t, dial(ca, "envoy.test"), "--runtime-root="+write(t, map[string]string{"a.yaml": file}), "--grpc-tls",
		"--grpc-certificate="+certificate, "--grpc-key="+key, "--grpc-client-ca="+ca.file, "--grpc-client-name=envoy.test")
	assert.Equal(t, 2, r.left("day", "x"))

	for name, options := range map[string][]grpc.DialOption{
		"another name": dial(ca, "other.test"), "another CA": dial(stranger, "envoy.test"), "no certificate": dial(ca, ""),
	} {
		refusedTo(t, r, name, options)
	}
}

func refusedTo(t *testing.T, r *running, name string, options []grpc.DialOption) {
	t.Helper()
	connection, err := grpc.NewClient(r.address(), options...)
	require.NoError(t, err)
	defer connection.Close()
	err = connection.Invoke(context.Background(), "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		request("d", "day", "x", 1), request("", "", "", 0))
	assert.Error(t, err, name)
}
