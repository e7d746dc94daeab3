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

// TestABodyEndsOnce: the transport reads once more behind the end of a body of known length. When the answer has begun,
// net/http has closed the body; the error would end the connection to the upstream, and break its answer off.
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

// closedBehind is a body that has been closed when it is read behind its end.
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

// TestABodyThatBreaksOff: a body that ends early is noted as the client's fault, and not as the fault of the code that
// reads it to the end.
func TestABodyThatBreaksOff(t *testing.T) {
	for err, want := range map[error]error{os.ErrDeadlineExceeded: os.ErrDeadlineExceeded, io.EOF: nil, http.ErrBodyReadAfterClose: nil} {
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)))
		var b clientBody
		b.begin(r)
		_, _ = io.ReadAll(r.Body)
		assert.Equal(t, want, b.err())
	}
}

// TestOnlyAnUpstreamWithHTTP2HasGRPC: for an upstream without HTTP/2, the content type of gRPC does not excuse a slow
// body.
func TestOnlyAnUpstreamWithHTTP2HasGRPC(t *testing.T) {
	for _, grpc := range []bool{false, true} {
		p := &Proxy{http2: grpc}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.ProtoMajor, r.Header = 2, http.Header{"Content-Type": {"application/grpc"}}
		assert.Equal(t, grpc, p.MayBeSilent(r))
	}
}
