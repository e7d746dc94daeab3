package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// unheeding returns an upstream that waits twice for the channel let: before it answers, and before the end of the
// body. It stops waiting when the request's context ends, as a real connection would.
func unheeding(let chan struct{}) roundTripper {
	wait := func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-let:
			return nil
		}
	}
	return func(r *http.Request) (*http.Response, error) {
		if err := wait(r.Context()); err != nil {
			return nil, err
		}
		body, send := io.Pipe()
		go func() { send.CloseWithError(wait(r.Context())) }()
		return &http.Response{StatusCode: 200, Request: r, Header: http.Header{}, Body: body}, nil
	}
}

// TestAClientThatHangsUp: when a client hangs up, its request is no longer in flight. With ignore_client_abort, it is
// still in flight.
func TestAClientThatHangsUp(t *testing.T) {
	for _, ignored := range []bool{false, true} {
		t.Run(fmt.Sprint(ignored), func(t *testing.T) {
			file, err := rulefile.Parse("weir.yaml", fmt.Appendf(nil, "listen: 127.0.0.1:0\n"+
				"upstream: {url: \"http://127.0.0.1:9\", ignore_client_abort: %v}\n"+
				"rules: [{name: a, concurrency: 1, max_keys: 100}]\n", ignored))
			require.NoError(t, err)
			var transports replaced
			server, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler), Transport: transports.of})
			require.NoError(t, err)
			defer server.stop()
			server.life.base.Done() // makes the channel here, because it must not belong to the bubble
			synctest.Test(t, func(t *testing.T) {
				let := make(chan struct{})
				transports.by(unheeding(let))
				ask := func() (hangUp func()) {
					ctx, cancel := context.WithCancel(t.Context())
					go func() {
						defer func() { _ = recover() }() // recovers http.ErrAbortHandler, as net/http does
						server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
					}()
					synctest.Wait()
					return func() { cancel(); synctest.Wait() }
				}
				hangUp := ask()
				assert.Equal(t, http.StatusTooManyRequests, statusOfAnother(server))
				hangUp()
				if ignored {
					assert.Equal(t, http.StatusTooManyRequests, statusOfAnother(server), "the upstream works for nobody")
					let <- struct{}{} // makes the upstream answer
					synctest.Wait()
				}
				assert.Zero(t, server.traffic.inFlight.Load())

				hangUp = ask()
				let <- struct{}{}
				synctest.Wait()
				assert.Equal(t, http.StatusTooManyRequests, statusOfAnother(server), "the answer has begun")
				hangUp()
				assert.Zero(t, server.traffic.inFlight.Load())
				assert.Zero(t, server.upstreams.Failures())

				hangUp = ask()
				let <- struct{}{}
				let <- struct{}{}
				synctest.Wait()
				assert.Zero(t, server.traffic.inFlight.Load(), "a client that stays")
				hangUp()
			})
		})
	}
}

// TestAClientThatHangsUpAmidItsBody: a client hangs up before it has sent the complete body. With ignore_client_abort,
// its request stays in flight until the upstream answers or response_timeout is over, because the upstream may work on
// it.
func TestAClientThatHangsUpAmidItsBody(t *testing.T) {
	file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\n"+
		"upstream: {url: \"http://127.0.0.1:9\", ignore_client_abort: true, response_timeout: 10s}\n"+
		"rules: [{name: a, concurrency: 1, max_keys: 100}]\n"))
	require.NoError(t, err)
	var transports replaced
	server, err := Start(Config{File: file, Log: slog.New(slog.DiscardHandler), Transport: transports.of})
	require.NoError(t, err)
	defer server.stop()
	server.life.base.Done() // makes the channel here, because it must not belong to the bubble
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		transports.by(roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Body == nil {
				return nil, errors.New("this is another one")
			}
			sent := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, r.Body)
				sent <- err
			}()
			select {
			case err := <-sent: // a real transport would close the connection here
				return nil, err
			case <-let:
				return &http.Response{StatusCode: 200, Request: r, Header: http.Header{}, Body: http.NoBody}, nil
			}
		}))
		hangUp := func() {
			body, client := io.Pipe()
			go server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
			_, err := io.WriteString(client, "half")
			assert.NoError(t, err)
			assert.NoError(t, client.CloseWithError(io.ErrUnexpectedEOF))
			synctest.Wait()
			assert.Equal(t, http.StatusTooManyRequests, statusOfAnother(server), "the upstream works for nobody")
		}
		hangUp()
		let <- struct{}{}
		synctest.Wait()
		assert.Zero(t, server.traffic.inFlight.Load())

		hangUp()
		time.Sleep(10*time.Second - 1)
		synctest.Wait()
		assert.Equal(t, http.StatusTooManyRequests, statusOfAnother(server), "it may still answer")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Zero(t, server.traffic.inFlight.Load())
		assert.Zero(t, server.upstreams.Failures())
	})
}

// TestTheServerEndsWithRequestsOfNobody: the server can end although upstreams have not answered requests whose clients
// have gone.
func TestTheServerEndsWithRequestsOfNobody(t *testing.T) {
	asked, let := make(chan context.Context), make(chan struct{})
	url := newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Context()
		<-let
	})
	s := start(t, "server: {shutdown_timeout: 0s}\nupstream: {url: \""+url+"\", ignore_client_abort: true}\n"+one)
	conn := s.dial("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	work := <-asked
	require.NoError(t, conn.Close())
	s.stop()
	<-work.Done()
	let <- struct{}{}
}
