package audit

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/version"
)

// answerTimeout is the longest time for an answer. It is long because some servers delay requests.
const answerTimeout = 30 * time.Second

// A Target is a server that [Resolve] has found.
type Target struct {
	URL     *url.URL
	Address netip.AddrPort // the address for all connections
	// Roots has the certificate authorities for https. nil means those of the system. Insecure accepts any certificate.
	Roots    *x509.CertPool
	Insecure bool
}

// TLS returns the configuration for https, for a protocol such as h2.
func (t Target) TLS(protocol string) *tls.Config {
	return &tls.Config{ServerName: t.URL.Hostname(), NextProtos: []string{protocol}, RootCAs: t.Roots,
		InsecureSkipVerify: t.Insecure}
}

// Resolve finds the address of a URL. An audit is a load, so the address must be on this machine or in a private
// network. For any other address, Resolve returns an error unless anywhere is set.
func Resolve(ctx context.Context, text string, anywhere bool) (t Target, err error) {
	if t.URL, err = url.Parse(text); err != nil {
		return t, err
	}
	if t.URL.Scheme != "http" && t.URL.Scheme != "https" || t.URL.Hostname() == "" {
		return t, fmt.Errorf("%q: want http:// or https:// and a host", text)
	}
	port := t.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[t.URL.Scheme]
	}
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return t, fmt.Errorf("%q: %w", text, err)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", t.URL.Hostname())
	if err != nil {
		return t, err
	}
	address := addresses[0].Unmap()
	if !anywhere && !address.IsLoopback() && !address.IsPrivate() && !address.IsLinkLocalUnicast() {
		return t, fmt.Errorf("%s is %v, which is neither on this machine nor on a private network: with --i-run-this-server "+
			"it is audited all the same", t.URL.Hostname(), address)
	}
	t.Address = netip.AddrPortFrom(address, uint16(number))
	return t, nil
}

// UserAgent returns the User-Agent of an audit.
func UserAgent() string { return strings.TrimSuffix("weir-audit/"+version.Info().Main.Version, "/") }

// A dialer is a Client over TCP. It writes requests itself, exactly as given, because a library would change their
// spelling.
type dialer struct {
	target Target
	http2  *http2Client

	mu   sync.Mutex
	idle []*conn
}

type conn struct {
	net.Conn
	r *bufio.Reader
}

// NewClient returns a Client of a server, and a function that closes its connections.
func NewClient(t Target) (Client, func()) {
	d := &dialer{target: t}
	d.http2 = newHTTP2Client(d)
	return d, func() {
		d.http2.client.CloseIdleConnections()
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, c := range d.idle {
			_ = c.Close()
		}
		d.idle = nil
	}
}

// Do implements Client. Its errors name the method and the URL.
func (d *dialer) Do(ctx context.Context, request Request) (a Answer, err error) {
	send := d.http1
	if request.Proto == http2 {
		send = d.http2.Do
	}
	if a, err = send(ctx, request); err != nil {
		err = fmt.Errorf("%s %s://%s%s: %w", request.Method, d.target.URL.Scheme, d.target.URL.Host, request.Target, err)
	}
	return a, err
}

// http1 sends a request over HTTP/1 and reads the answer. It tries again if the server has closed an idle connection
// meanwhile.
func (d *dialer) http1(ctx context.Context, request Request) (a Answer, err error) {
	c, isReused := d.takeIdle(request)
	for {
		if c == nil {
			if c, err = d.dial(ctx, request.From); err != nil {
				return a, err
			}
		}
		a, err = d.exchange(c, request)
		if err == nil || !isReused {
			return a, err
		}
		c, isReused = nil, false
	}
}

func (d *dialer) takeIdle(request Request) (*conn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.idle); n > 0 && request.From == "" {
		c := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return c, true
	}
	return nil, false
}

func (d *dialer) dialTCP(ctx context.Context, from string) (net.Conn, error) {
	dial := net.Dialer{Timeout: 5 * time.Second}
	if from != "" {
		dial.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return dial.DialContext(ctx, "tcp", d.target.Address.String())
}

func (d *dialer) dial(ctx context.Context, from string) (*conn, error) {
	c, err := d.dialTCP(ctx, from)
	if err != nil {
		return nil, err
	}
	if d.target.URL.Scheme == "https" {
		tlsConn := tls.Client(c, d.target.TLS("http/1.1"))
		if err := tlsConn.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c = tlsConn
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

func (d *dialer) requestText(request Request) string {
	var b strings.Builder
	proto, host := request.Proto, request.Host
	if proto == "" {
		proto = "HTTP/1.1"
	}
	if host == "" {
		host = d.target.URL.Host
	}
	fmt.Fprintf(&b, "%s %s %s\r\nHost: %s\r\nUser-Agent: %s\r\n", request.Method, request.Target, proto, host, UserAgent())
	for _, f := range request.Fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		b.WriteString("Content-Length: 0\r\n")
	}
	b.WriteString("\r\n")
	return strings.Repeat(b.String(), max(request.Times, 1))
}

// exchange sends a request as often as its field Times says and reads all answers. If the connection can be used again,
// exchange keeps it.
func (d *dialer) exchange(c *conn, request Request) (a Answer, err error) {
	isReusable := false
	defer func() {
		if !isReusable {
			_ = c.Close()
		}
	}()
	if err := c.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return a, err
	}
	a.Sent = time.Now()
	if _, err := io.WriteString(c, d.requestText(request)); err != nil {
		return a, err
	}
	for range max(request.Times, 1) {
		resp, err := http.ReadResponse(c.r, &http.Request{Method: request.Method})
		if err != nil {
			return a, err
		}
		a.Status, a.Header = resp.StatusCode, resp.Header
		if resp.StatusCode == http.StatusSwitchingProtocols {
			a.Done = time.Now()
			return a, nil
		}
		n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		if a.Length, a.Done = int(n), time.Now(); err != nil {
			return a, err
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
			a.Refused++
		}
		isReusable = !resp.Close && request.From == "" && request.Proto == "" && n < 1<<20
	}
	if isReusable {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.idle = append(d.idle, c)
	}
	return a, nil
}
