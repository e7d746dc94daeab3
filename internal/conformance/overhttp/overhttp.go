// Package overhttp is a client and a server behind a front, for the fronts of package conformance that speak HTTP.
package overhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/conformance"
)

// The header fields that carry a request of a case.
const (
	User  = "X-User"
	Tier  = "X-Tier"
	Cost  = "X-Cost"
	Quota = "X-Quota" // rate and burst: "1/3600000ms 5", "0" or "unlimited"
	// Policy has the same numbers as Quota, in the syntax of RateLimit-Policy. They are in the item "numbers". It is
	// for fronts that read the header field of a proxy.
	Policy = "X-RateLimit-Policy"
	ID     = "X-Id"
	// Actual is a header field of an answer. It has the actual cost of the request.
	Actual       = "X-Actual"
	requestField = "X-Request" // as JSON
)

// Request returns the request of a case that an HTTP request carries.
func Request(r *http.Request) (q conformance.Request) {
	if err := json.Unmarshal([]byte(r.Header.Get(requestField)), &q); err != nil {
		panic(err)
	}
	return q
}

// Backend returns the handler of the server behind a front. It answers as the request says, and panics if the request
// must end as Broken. An answer has the actual cost of the request in the header field Actual. The cost is also in the
// JSON of the answer, as the usage in answers of language models.
func Backend(env *conformance.Env) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := env.Serve(r.Context(), r.Header.Get(ID))
		switch {
		case err != nil && r.Context().Err() == nil:
			w.WriteHeader(http.StatusNotFound)
		case q.Ends == conformance.Broken:
			panic(http.ErrAbortHandler)
		case q.Ends == conformance.Bad:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(Actual, strconv.FormatUint(q.Actual, 10))
			fmt.Fprintf(w, `{"usage":{"prompt_tokens":0,"completion_tokens":%[1]d,"total_tokens":%[1]d}}`, q.Actual)
		}
	})
}

// A Client sends requests of cases to an HTTP server.
type Client struct {
	url    string
	client *http.Client
	close  func()
}

// Serve starts a server with a handler, and returns a client of the server. The two are connected over loopback, or
// over pipes in a bubble.
func Serve(env *conformance.Env, h http.Handler) *Client {
	l, dial := Listen(env)
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	c := NewClient("http://127.0.0.1", dial)
	c.close = func() {
		_ = server.Close()
		<-done
	}
	return c
}

// NewClient returns a client of a server. If the function dial is nil, the client connects to the URL's host.
func NewClient(url string, dial func(context.Context) (net.Conn, error)) *Client {
	transport := &http.Transport{}
	if dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	}
	return &Client{url: strings.TrimSuffix(url, "/"), client: &http.Client{Transport: transport}}
}

// HTTP returns the client of net/http, for clients of protocols that run over HTTP.
func (c *Client) HTTP() *http.Client { return c.client }

// URL returns the URL of the server, without a slash at its end.
func (c *Client) URL() string { return c.url }

// Close closes the client's connections, and the server that Serve started.
func (c *Client) Close() {
	c.client.CloseIdleConnections()
	if c.close != nil {
		c.close()
	}
}

// Do returns the HTTP request that carries a request of a case.
func Do(ctx context.Context, url string, q conformance.Request) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+q.Path, nil)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(q)
	if err != nil {
		panic(err)
	}
	r.Header.Set(requestField, string(text))
	r.Header.Set(ID, q.ID)
	r.Header.Set("X-Forwarded-For", q.Client)
	for name, value := range map[string]string{User: q.User, Tier: q.Tier, Quota: quota(q.Quota), Policy: policy(q.Quota)} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if q.Takes() != 1 {
		r.Header.Set(Cost, strconv.FormatUint(q.Takes(), 10))
	}
	return r
}

func quota(n *conformance.Numbers) string {
	switch {
	case n == nil:
		return ""
	case n.Constant == conformance.Unlimited:
		return "unlimited"
	case n.Constant == conformance.Blocked:
		return "0"
	}
	return fmt.Sprintf("%d/%dms %d", n.N, n.Per.Milliseconds(), n.Burst)
}

// policy returns a quota in the syntax of RateLimit-Policy. For an unlimited quota it returns "", because the syntax
// cannot express it.
func policy(n *conformance.Numbers) string {
	switch {
	case n == nil || n.Constant == conformance.Unlimited:
		return ""
	case n.Constant == conformance.Blocked:
		return `"numbers";q=0`
	}
	return fmt.Sprintf(`"numbers";q=%d;w=%d`, n.Burst, n.Burst*uint64(n.Per/time.Second)/n.N)
}

// Send sends a request.
func (c *Client) Send(ctx context.Context, q conformance.Request) conformance.Answer {
	resp, err := c.client.Do(Do(ctx, c.url, q))
	if err != nil {
		return conformance.Answer{Err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a := Read(resp.StatusCode, resp.Header, body)
	a.Err = err
	return a
}

// Read reads an answer.
func Read(status int, h http.Header, body []byte) (a conformance.Answer) {
	a.Admitted = status == http.StatusOK || status == http.StatusInternalServerError
	a.Failed = !a.Admitted && status != http.StatusTooManyRequests
	if seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64); err == nil {
		a.RetryAfter = time.Duration(seconds) * time.Second
	}
	var problem struct {
		Violated []string `json:"violated-policies"`
	}
	if json.Unmarshal(body, &problem) == nil {
		a.Refused = problem.Violated
	}
	return a
}

// Listen listens on loopback. In a bubble, it returns a listener for pipes, and the function that connects to it.
func Listen(env *conformance.Env) (net.Listener, func(context.Context) (net.Conn, error)) {
	if env.InBubble() {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		return l, l.dial
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		env.T.Fatal(err)
	}
	return l, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
}

// pipes is a listener without sockets.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "pipe" }
