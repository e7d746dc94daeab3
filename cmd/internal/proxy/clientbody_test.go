package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
)

// TestABodyEndsOnce: a clientBody returns io.EOF again after its end. If the length of a body is known, the transport
// reads once more after the end. net/http may have closed the body by then, and the error of a closed body would break
// off the answer.
func TestABodyEndsOnce(t *testing.T) {
	body := &closedBehind{text: "abc"}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.ContentLength = 3
	var b clientBody
	b.begin(r)
	got, err := io.ReadAll(r.Body)
	assert.NoError(t, err)
	assert.Equal(t, "abc", string(got))
	n, err := r.Body.Read(make([]byte, 1))
	assert.Zero(t, n)
	assert.ErrorIs(t, err, io.EOF)
	assert.NoError(t, b.err())
}

// closedBehind is a body that returns the error of a closed body after its end.
type closedBehind struct{ text string }

func (b *closedBehind) Close() error { return nil }

func (b *closedBehind) Read(into []byte) (int, error) {
	if b.text == "" {
		return 0, http.ErrBodyReadAfterClose
	}
	n := copy(into, b.text)
	b.text = b.text[n:]
	return n, io.EOF
}

// TestABodyThatBreaksOff: if a body ends early, the client is the cause. A read after the body was closed is not the
// client's fault.
func TestABodyThatBreaksOff(t *testing.T) {
	for err, want := range map[error]error{os.ErrDeadlineExceeded: os.ErrDeadlineExceeded, io.EOF: nil, http.ErrBodyReadAfterClose: nil} {
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)))
		var b clientBody
		b.begin(r)
		_, _ = io.ReadAll(r.Body)
		assert.Equal(t, want, b.err())
	}
}

// TestOnlyAnUpstreamWithHTTP2HasGRPC: if the upstream does not use HTTP/2, a slow body is cut off, even if it has the
// content type of gRPC.
func TestOnlyAnUpstreamWithHTTP2HasGRPC(t *testing.T) {
	for _, grpc := range []bool{false, true} {
		p := &Proxy{http2: grpc}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.ProtoMajor, r.Header = 2, http.Header{"Content-Type": {"application/grpc"}}
		assert.Equal(t, grpc, p.MayBeSilent(r))
	}
}
