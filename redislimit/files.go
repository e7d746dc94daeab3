package redislimit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Files contains the names of files that [Open] reads again for each new connection. "" stands for no file.
type Files struct {
	CA                          string // certificates in PEM of the authorities of the store, instead of the machine's
	Certificate, CertificateKey string // in PEM, shown to the store to identify the client
	Password                    string // of the store's user, without the newline at its end

	// AnyName accepts a certificate of the store that is made out to any name.
	AnyName bool
}

// FromFiles sets the files that a client reads. If a file cannot be read, [Open] returns an error. Later, the client
// logs the error and continues to use what it read last. CA and Certificate need a rediss:// address. Password is the
// password of the store, not of sentinels ([SentinelUser]). With Password, the address must not have a password.
func FromFiles(f Files) ClientOption {
	return func(c *clientConfig) error {
		if (f.Certificate == "") != (f.CertificateKey == "") {
			return fmt.Errorf("redislimit: FromFiles: Certificate %q and CertificateKey %q: want both or none", f.Certificate, f.CertificateKey)
		}
		c.files = f
		return nil
	}
}

func (f Files) isTLS() bool { return f.CA != "" || f.Certificate != "" || f.AnyName }

type credentials struct {
	authorities  *x509.CertPool
	certificates []tls.Certificate
	password     string
}

func (f Files) read() (creds credentials, err error) {
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return creds, err
		}
		if creds.authorities = x509.NewCertPool(); !creds.authorities.AppendCertsFromPEM(text) {
			return creds, fmt.Errorf("%s: no certificate in PEM", f.CA)
		}
	}
	if f.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.CertificateKey)
		if err != nil {
			return creds, fmt.Errorf("%s: %w", f.Certificate, err)
		}
		creds.certificates = []tls.Certificate{pair}
	}
	if f.Password != "" {
		text, err := os.ReadFile(f.Password)
		if err != nil {
			return creds, err
		}
		if creds.password = strings.TrimRight(string(text), "\r\n"); creds.password == "" {
			return creds, fmt.Errorf("%s: no password in it", f.Password)
		}
	}
	return creds, nil
}

type dialer struct {
	clientConfig
	lastGood    atomic.Pointer[credentials] // the last contents without an error
	lastFailure atomic.Pointer[dialFailure]
	lastLogged  atomic.Pointer[string] // the error that was logged last

	opened, closed atomic.Int64

	sentinelResolver net.Resolver // a default resolver; a net.Dialer with this resolver connects to a sentinel
}

type connection struct {
	net.Conn
	once   sync.Once
	closed *atomic.Int64
}

func (c *connection) Close() error {
	c.once.Do(func() { c.closed.Add(1) })
	return c.Conn.Close()
}

type dialFailure struct {
	address string
	err     error
}

func newDialer(config clientConfig, redisOptions *rueidis.ClientOption) (*dialer, error) {
	d := &dialer{clientConfig: config}
	switch f := config.files; {
	case f.isTLS() && redisOptions.TLSConfig == nil:
		return nil, errors.New("redislimit: FromFiles: CA and Certificate: the address does not begin with rediss://")
	case f.Password != "" && redisOptions.Password != "":
		return nil, errors.New("redislimit: FromFiles: Password: the address has a password, too: leave one of the two out")
	}
	creds, err := config.files.read()
	if err != nil {
		return nil, fmt.Errorf("redislimit: FromFiles: %w", err)
	}
	d.lastGood.Store(&creds)
	if redisOptions.DialCtxFn == nil {
		redisOptions.DialCtxFn = d.dial
	}
	redisOptions.Sentinel.Dialer.Resolver = &d.sentinelResolver
	if user := redisOptions.Username; config.files.Password != "" {
		sentinel := rueidis.AuthCredentials{Username: redisOptions.Sentinel.Username, Password: redisOptions.Sentinel.Password}
		redisOptions.AuthCredentialsFn = func(to rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			if _, ok := to.Address.(sentinelAddr); ok {
				return sentinel, nil
			}
			return rueidis.AuthCredentials{Username: user, Password: d.read().password}, nil
		}
	}
	return d, nil
}

// read reads the files. If a file cannot be read, perhaps because it is half written, the previous contents stay in
// use.
func (d *dialer) read() *credentials {
	creds, err := d.files.read()
	if err == nil {
		d.lastGood.Store(&creds)
		d.lastLogged.Store(nil)
		return &creds
	}
	text := err.Error()
	if last := d.lastLogged.Swap(&text); (last == nil || *last != text) && d.log != nil {
		d.log.Warn("a file for the connection to the store is bad; its previous contents are used", slog.Any("error", err))
	}
	return d.lastGood.Load()
}

func (d *dialer) dial(ctx context.Context, address string, tcp *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
	if config == nil {
		conn, err = tcp.DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&tls.Dialer{NetDialer: tcp, Config: d.tlsConfig(config)}).DialContext(ctx, "tcp", address)
	}
	switch {
	case err != nil:
		d.lastFailure.Store(&dialFailure{address, err})
		return nil, err
	case config == nil:
		d.noteReached(address)
	default:
		conn = &tlsConn{Conn: conn, dialer: d, address: address}
	}
	d.opened.Add(1)
	conn = &connection{Conn: conn, closed: &d.closed}
	if tcp.Resolver == &d.sentinelResolver {
		conn = sentinelConn{conn}
	}
	return conn, nil
}

func (d *dialer) noteReached(address string) {
	if last := d.lastFailure.Load(); last != nil && last.address == address {
		d.lastFailure.CompareAndSwap(last, nil)
	}
}

// A sentinelConn is a connection to a sentinel. The choice of credentials recognizes it by the type of its address.
type sentinelConn struct{ net.Conn }

type sentinelAddr struct{ net.Addr }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

// A tlsConn is a connection over TLS. With TLS 1.3, a server that rejects the client's certificate completes the
// handshake, then sends an alert instead of its first answer.
type tlsConn struct {
	net.Conn
	dialer      *dialer
	address     string
	hasAnswered atomic.Bool
}

// Read notes the server's first answer, or the alert that came instead.
func (c *tlsConn) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	switch {
	case c.hasAnswered.Load():
	case isCertificateError(err):
		c.dialer.lastFailure.Store(&dialFailure{c.address, err})
	case n > 0:
		c.hasAnswered.Store(true)
		c.dialer.noteReached(c.address)
	}
	return n, err
}

// Write reads the server's alert if the write fails, because the client library would close the connection without
// reading it.
func (c *tlsConn) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	if err != nil && !c.hasAnswered.Load() {
		_ = c.SetReadDeadline(time.Now().Add(alertTime))
		_, _ = c.Read(make([]byte, 1))
	}
	return n, err
}

const alertTime = 50 * time.Millisecond

func (d *dialer) tlsConfig(config *tls.Config) *tls.Config {
	config = config.Clone()
	creds := d.read()
	if creds.authorities != nil {
		config.RootCAs = creds.authorities
	}
	if creds.certificates != nil {
		config.Certificates = creds.certificates
	}
	if config.GetClientCertificate == nil {
		config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return chooseCertificate(config.Certificates, info)
		}
	}
	if d.files.AnyName {
		acceptAnyName(config)
	}
	return config
}

// chooseCertificate returns the first certificate that the server accepts. For an expired certificate, it returns an
// error itself, because the server's alert might not arrive.
func chooseCertificate(certificates []tls.Certificate, info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	for i := range certificates {
		certificate := &certificates[i]
		if info.SupportsCertificate(certificate) != nil {
			continue
		}
		if leaf := certificate.Leaf; leaf != nil && time.Now().After(leaf.NotAfter) {
			return nil, x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired, Detail: fmt.Sprintf(
				"the certificate of this client, %s, was valid until %s", leaf.Subject, leaf.NotAfter.UTC().Format(time.RFC3339))}
		}
		return certificate, nil
	}
	return new(tls.Certificate), nil
}

func acceptAnyName(config *tls.Config) {
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		intermediates := x509.NewCertPool()
		for _, certificate := range state.PeerCertificates[1:] {
			intermediates.AddCert(certificate)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: config.RootCAs, Intermediates: intermediates})
		return err
	}
}

// explain adds the cause to an error that does not name it, such as a timeout after a failed TLS handshake.
func (d *dialer) explain(err error) error {
	if d == nil || err == nil || isCertificateError(err) {
		return err
	}
	if last := d.lastFailure.Load(); last != nil && isCertificateError(last.err) {
		return fmt.Errorf("%w: %w", err, last.err)
	}
	return err
}

// isCertificateError reports whether an error is about certificates.
func isCertificateError(err error) bool {
	var unverified *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var network *net.OpError
	return errors.As(err, &unverified) || errors.As(err, &invalid) || errors.As(err, &authority) || errors.As(err, &name) ||
		errors.As(err, &network) && network.Op == "remote error" // an alert from the server
}
