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

type material struct {
	authorities  *x509.CertPool
	certificates []tls.Certificate
	password     string
}

func (f Files) read() (m material, err error) {
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return m, err
		}
		if m.authorities = x509.NewCertPool(); !m.authorities.AppendCertsFromPEM(text) {
			return m, fmt.Errorf("%s: no certificate in PEM", f.CA)
		}
	}
	if f.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.CertificateKey)
		if err != nil {
			return m, fmt.Errorf("%s: %w", f.Certificate, err)
		}
		m.certificates = []tls.Certificate{pair}
	}
	if f.Password != "" {
		text, err := os.ReadFile(f.Password)
		if err != nil {
			return m, err
		}
		if m.password = strings.TrimRight(string(text), "\r\n"); m.password == "" {
			return m, fmt.Errorf("%s: no password in it", f.Password)
		}
	}
	return m, nil
}

type dialer struct {
	clientConfig
	good  atomic.Pointer[material] // the last contents without an error
	cause atomic.Pointer[dialFailure]
	told  atomic.Pointer[string] // the error that was logged last

	opened, closed atomic.Int64

	ofSentinels net.Resolver // a default resolver; a net.Dialer with this resolver connects to a sentinel
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

func newDialer(config clientConfig, o *rueidis.ClientOption) (*dialer, error) {
	d := &dialer{clientConfig: config}
	switch f := config.files; {
	case f.isTLS() && o.TLSConfig == nil:
		return nil, errors.New("redislimit: FromFiles: CA and Certificate: the address does not begin with rediss://")
	case f.Password != "" && o.Password != "":
		return nil, errors.New("redislimit: FromFiles: Password: the address has a password, too: leave one of the two out")
	}
	read, err := config.files.read()
	if err != nil {
		return nil, fmt.Errorf("redislimit: FromFiles: %w", err)
	}
	d.good.Store(&read)
	if o.DialCtxFn == nil {
		o.DialCtxFn = d.dial
	}
	o.Sentinel.Dialer.Resolver = &d.ofSentinels
	if user := o.Username; config.files.Password != "" {
		sentinel := rueidis.AuthCredentials{Username: o.Sentinel.Username, Password: o.Sentinel.Password}
		o.AuthCredentialsFn = func(to rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
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
func (d *dialer) read() *material {
	fresh, err := d.files.read()
	if err == nil {
		d.good.Store(&fresh)
		d.told.Store(nil)
		return &fresh
	}
	text := err.Error()
	if last := d.told.Swap(&text); (last == nil || *last != text) && d.log != nil {
		d.log.Warn("a file for the connection to the store is bad; its previous contents are used", slog.Any("error", err))
	}
	return d.good.Load()
}

func (d *dialer) dial(ctx context.Context, address string, tcp *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
	if config == nil {
		conn, err = tcp.DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&tls.Dialer{NetDialer: tcp, Config: d.secure(config)}).DialContext(ctx, "tcp", address)
	}
	switch {
	case err != nil:
		d.cause.Store(&dialFailure{address, err})
		return nil, err
	case config == nil:
		d.reached(address)
	default:
		conn = &secured{Conn: conn, dialer: d, address: address}
	}
	d.opened.Add(1)
	conn = &connection{Conn: conn, closed: &d.closed}
	if tcp.Resolver == &d.ofSentinels {
		conn = sentinelConn{conn}
	}
	return conn, nil
}

func (d *dialer) reached(address string) {
	if last := d.cause.Load(); last != nil && last.address == address {
		d.cause.CompareAndSwap(last, nil)
	}
}

// A sentinelConn is a connection to a sentinel. The choice of credentials recognizes it by the type of its address.
type sentinelConn struct{ net.Conn }

type sentinelAddr struct{ net.Addr }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

// A secured is a connection over TLS. With TLS 1.3, a server that rejects the client's certificate completes the
// handshake, then sends an alert instead of its first answer.
type secured struct {
	net.Conn
	dialer  *dialer
	address string
	answers atomic.Bool
}

// Read notes the server's first answer, or the alert that came instead.
func (c *secured) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	switch {
	case c.answers.Load():
	case isHandshake(err):
		c.dialer.cause.Store(&dialFailure{c.address, err})
	case n > 0:
		c.answers.Store(true)
		c.dialer.reached(c.address)
	}
	return n, err
}

// Write reads the server's alert if the write fails, because the client library would close the connection without
// reading it.
func (c *secured) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	if err != nil && !c.answers.Load() {
		_ = c.SetReadDeadline(time.Now().Add(alertTime))
		_, _ = c.Read(make([]byte, 1))
	}
	return n, err
}

const alertTime = 50 * time.Millisecond

func (d *dialer) secure(config *tls.Config) *tls.Config {
	config = config.Clone()
	read := d.read()
	if read.authorities != nil {
		config.RootCAs = read.authorities
	}
	if read.certificates != nil {
		config.Certificates = read.certificates
	}
	if config.GetClientCertificate == nil {
		config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return present(config.Certificates, info)
		}
	}
	if d.files.AnyName {
		acceptAnyName(config)
	}
	return config
}

// present returns the first certificate that the server accepts. For an expired certificate, it returns an error
// itself, because the server's alert might not arrive.
func present(all []tls.Certificate, info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	for i := range all {
		one := &all[i]
		if info.SupportsCertificate(one) != nil {
			continue
		}
		if leaf := one.Leaf; leaf != nil && time.Now().After(leaf.NotAfter) {
			return nil, x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired, Detail: fmt.Sprintf(
				"the certificate of this client, %s, was valid until %s", leaf.Subject, leaf.NotAfter.UTC().Format(time.RFC3339))}
		}
		return one, nil
	}
	return new(tls.Certificate), nil
}

func acceptAnyName(config *tls.Config) {
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		others := x509.NewCertPool()
		for _, one := range state.PeerCertificates[1:] {
			others.AddCert(one)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: config.RootCAs, Intermediates: others})
		return err
	}
}

// explain adds the cause to an error that does not name it, such as a timeout after a failed TLS handshake.
func (d *dialer) explain(err error) error {
	if d == nil || err == nil || isHandshake(err) {
		return err
	}
	if last := d.cause.Load(); last != nil && isHandshake(last.err) {
		return fmt.Errorf("%w: %w", err, last.err)
	}
	return err
}

// isHandshake reports whether an error is about certificates.
func isHandshake(err error) bool {
	var unverified *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var network *net.OpError
	return errors.As(err, &unverified) || errors.As(err, &invalid) || errors.As(err, &authority) || errors.As(err, &name) ||
		errors.As(err, &network) && network.Op == "remote error" // an alert from the server
}
