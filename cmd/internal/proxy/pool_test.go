package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestACheckWithoutAConnection: a check that finds no free connection does not make its server unhealthy.
func TestACheckWithoutAConnection(t *testing.T) {
	for err, sick := range map[error]bool{errNoFile: false, io.ErrUnexpectedEOF: true} {
		ctx, cancel := context.WithCancel(t.Context())
		checks := 0
		m := &member{Target: Target{URL: &url.URL{Scheme: "http", Host: "a"}}, log: slog.New(slog.DiscardHandler)}
		m.transport = roundTripper(func(*http.Request) (*http.Response, error) {
			if checks++; checks > 3 {
				cancel()
			}
			return nil, fmt.Errorf("dial: %w", err)
		})
		m.watch(ctx, &Health{Path: "/", Interval: time.Millisecond, Timeout: time.Minute, Passes: 1, Fails: 2})
		assert.Equal(t, sick, m.isSick.Load(), err)
	}
}

// TestWhichErrorsSayThatNothingWasSent: only the errors of failed connections say that nothing was sent.
func TestWhichErrorsSayThatNothingWasSent(t *testing.T) {
	for err, want := range map[error]bool{
		&net.OpError{Op: "dial", Err: errors.New("x")}: true, &net.OpError{Op: "read", Err: errors.New("x")}: false,
		&tls.CertificateVerificationError{Err: errors.New("x")}: true, errNoFile: false,
	} {
		assert.Equal(t, want, isUnconnected(err), err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
