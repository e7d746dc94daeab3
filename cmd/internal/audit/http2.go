package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// An http2Client is a Client that uses only HTTP/2, over TLS or in clear text with prior knowledge.
type http2Client struct {
	target Target
	client http.Client
}

func newHTTP2Client(d *dialer) *http2Client {
	var protocols http.Protocols
	protocols.SetHTTP2(d.target.URL.Scheme == "https")
	protocols.SetUnencryptedHTTP2(d.target.URL.Scheme == "http")
	return &http2Client{d.target, http.Client{
		Transport: &http.Transport{
			Protocols: &protocols, DisableCompression: true, TLSClientConfig: d.target.TLS("h2"),
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.dialTCP(ctx, "") },
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Do implements Client. It ignores the request's From, Host, Times and Target, and sends the URL of the server.
func (c *http2Client) Do(ctx context.Context, request Request) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, request.Method, c.target.URL.String(), http.NoBody)
	if err != nil {
		return a, err
	}
	r.Header.Set("User-Agent", UserAgent())
	for _, f := range request.Fields {
		r.Header.Add(f[0], f[1])
	}
	a.Sent = time.Now()
	resp, err := c.client.Do(r)
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		return a, urlErr.Err // leaves out the URL, because dialer.Do adds it
	} else if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		return a, fmt.Errorf("the server answered by %s", resp.Proto)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	a.Status, a.Header, a.Length, a.Done = resp.StatusCode, resp.Header, int(n), time.Now()
	return a, err
}
