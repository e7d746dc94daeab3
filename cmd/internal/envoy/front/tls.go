package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc/credentials/tls/certprovider/pemfile"
)

// TLSFiles names the certificate files of a server. Changed files are read again.
type TLSFiles struct {
	Certificate, Key string
	ClientCA         string // certificates of clients' CAs; "": clients need no certificate
	ClientName       string // with ClientCA: a name that a client's certificate must have; "": any
}

const refreshInterval = time.Second

// Server returns the settings of a TLS server, and a function that ends the checks for changed files. The error names
// the unusable file.
func (f TLSFiles) Server() (*tls.Config, func(), error) {
	if f.ClientCA == "" && f.ClientName != "" {
		return nil, nil, errors.New("a client's name is required, but there is no CA for clients: set GRPC_CLIENT_TLS_CACERT")
	}
	// This read finds a wrong file now. The certificate reader below would find it only with the first client.
	if _, err := tls.LoadX509KeyPair(f.Certificate, f.Key); err != nil {
		return nil, nil, err
	}
	provider, err := pemfile.NewProvider(pemfile.Options{
		CertFile: f.Certificate, KeyFile: f.Key, RootFile: f.ClientCA, RefreshDuration: refreshInterval,
	})
	if err != nil {
		return nil, nil, err
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		material, err := provider.KeyMaterial(hello.Context())
		if err != nil {
			return nil, err
		}
		config := base.Clone()
		config.GetConfigForClient = nil
		config.Certificates = material.Certs
		if f.ClientCA != "" {
			config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, material.Roots
			config.VerifyConnection = f.verify
		}
		return config, nil
	}
	if f.ClientCA != "" {
		if _, err := provider.KeyMaterial(context.Background()); err != nil {
			provider.Close()
			return nil, nil, fmt.Errorf("%s: %w", f.ClientCA, err)
		}
	}
	return base, provider.Close, nil
}

func (f TLSFiles) verify(state tls.ConnectionState) error {
	if f.ClientName == "" || len(state.PeerCertificates) > 0 && hasName(state.PeerCertificates[0], f.ClientName) {
		return nil
	}
	return fmt.Errorf("the client's certificate does not have the name %q", f.ClientName)
}

// hasName reports whether a certificate is for a DNS name, or has it as a URI.
func hasName(certificate *x509.Certificate, name string) bool {
	if certificate.VerifyHostname(name) == nil {
		return true
	}
	return slices.ContainsFunc(certificate.URIs, func(uri *url.URL) bool { return uri.String() == name })
}
