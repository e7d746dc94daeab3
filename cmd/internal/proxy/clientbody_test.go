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

// TestABodyEndsOnce: the transport reads a body of known length once more after its end. net/http may have closed it,
// and an error would break off the answer, so the clientBody returns io.EOF again.
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

// closedBehind returns the error of a closed body after its end.
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

// TestABodyThatBreaksOff: a body that ends early is the client's fault, but a read after the close is not.
func TestABodyThatBreaksOff(t *testing.T) {
	for err, want := range map[error]error{os.ErrDeadlineExceeded: os.ErrDeadlineExceeded, io.EOF: nil, http.ErrBodyReadAfterClose: nil} {
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)))
		var b clientBody
		b.begin(r)
		_, _ = io.ReadAll(r.Body)
		assert.Equal(t, want, b.err())
	}
}

// TestOnlyAnUpstreamWithHTTP2HasGRPC: without HTTP/2 at the upstream, a slow body is cut off even with gRPC's content
// type.
func TestOnlyAnUpstreamWithHTTP2HasGRPC(t *testing.T) {
	for _, grpc := range []bool{false, true} {
		p := &Proxy{http2: grpc}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.ProtoMajor, r.Header = 2, http.Header{"Content-Type": {"application/grpc"}}
		assert.Equal(t, grpc, p.MayBeSilent(r))
	}
}
