package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// watch checks a server at once, and then at intervals until ctx is done.
func (m *member) watch(ctx context.Context, h *Health) {
	tick := time.NewTicker(h.Interval)
	defer tick.Stop()
	passes, fails := 0, 0
	for {
		switch err := m.check(ctx, h); {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errNoFile): // not an error of the server
		case err == nil:
			passes, fails = passes+1, 0
			m.markReachable()
			if passes >= h.Passes && m.isSick.Swap(false) {
				m.log.Info("upstream up: it passes checks", "passes", passes)
			}
		default:
			passes, fails = 0, fails+1
			if fails >= h.Fails && !m.isSick.Swap(true) {
				m.log.Warn("upstream down: it fails checks", "fails", fails, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// check requests the health page. A status of 200 to 399 means that the server is healthy.
func (m *member) check(ctx context.Context, h *Health) error {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	page, err := url.ParseRequestURI(h.Path)
	if err != nil {
		return err
	}
	r := (&http.Request{
		Method: http.MethodGet, URL: page, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {"weir health check"}},
	}).WithContext(ctx)
	(&httputil.ProxyRequest{Out: r}).SetURL(m.URL)
	response, err := m.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // only the status matters
	if response.StatusCode < 200 || response.StatusCode > 399 {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}
