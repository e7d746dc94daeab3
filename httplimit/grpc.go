package httplimit

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-go/weir/limits"
)

// These are the gRPC status codes of refusals (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
const (
	grpcResourceExhausted = 8
	grpcUnavailable       = 14
)

// IsGRPC reports whether a request is a gRPC call. A gRPC call is a POST over HTTP/2 with content type application/grpc
// or a variant such as application/grpc+proto. A GET is not: a refused gRPC call has HTTP status 200, and a cache could
// store this answer to a GET. gRPC-Web is not either, because its clients read HTTP statuses.
func IsGRPC(r *http.Request) bool {
	suffix, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return ok && r.Method == http.MethodPost && r.ProtoMajor == 2 && (suffix == "" || suffix[0] == '+' || suffix[0] == ';')
}

// failedGRPC reports whether the header and trailers of an answer say that the gRPC call failed. A server that relays
// an answer may announce its trailers, or may not ([http.TrailerPrefix]).
func failedGRPC(h http.Header) bool {
	if !strings.HasPrefix(h.Get("Content-Type"), "application/grpc") {
		return false
	}
	status := h.Get("Grpc-Status")
	if status == "" {
		status = h.Get(http.TrailerPrefix + "Grpc-Status")
	}
	return status != "0"
}

// refuseGRPC answers a gRPC call with headers only ("Trailers-Only"). They have HTTP status 200 and a gRPC status. HTTP
// status 429 or 503 must not be used: gRPC clients would read it as UNAVAILABLE, and many of them would retry at once.
func (res *Result) refuseGRPC(w http.ResponseWriter) {
	code, message := uint64(grpcResourceExhausted), "rate limit exceeded"
	switch {
	case res.Verdict() == limits.Unavailable:
		code, message = grpcUnavailable, "the rate limiter's store does not answer"
	case res.neverPasses():
		message = "the call costs more than the rate limit"
	case res.retrySeconds() == 0:
		message = "too many calls are in flight"
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/grpc"}
	h["Grpc-Status"] = []string{strconv.FormatUint(code, 10)}
	h["Grpc-Message"] = []string{message}
	if res.retrySeconds() > 0 {
		details := grpcStatus(code, message, uint64(res.retrySeconds()))
		h["Grpc-Status-Details-Bin"] = []string{base64.RawStdEncoding.EncodeToString(details)}
	}
	w.WriteHeader(http.StatusOK)
}

// grpcStatus returns a google.rpc.Status with a google.rpc.RetryInfo of this many seconds, encoded as Protocol Buffers:
//
//	Status   { int32 code = 1; string message = 2; repeated Any details = 3; }
//	Any      { string type_url = 1; bytes value = 2; }
//	RetryInfo{ Duration retry_delay = 1; }
//	Duration { int64 seconds = 1; }
func grpcStatus(code uint64, message string, seconds uint64) []byte {
	delay := appendVarint(nil, 1, seconds)
	retryInfo := appendBytes(nil, 1, delay)
	detail := appendBytes(nil, 1, []byte("type.googleapis.com/google.rpc.RetryInfo"))
	detail = appendBytes(detail, 2, retryInfo)
	status := appendVarint(nil, 1, code)
	status = appendBytes(status, 2, []byte(message))
	return appendBytes(status, 3, detail)
}

// appendVarint appends a field of the wire type VARINT.
func appendVarint(b []byte, field byte, value uint64) []byte {
	return binary.AppendUvarint(append(b, field<<3), value)
}

// appendBytes appends a field of the wire type LEN.
func appendBytes(b []byte, field byte, value []byte) []byte {
	return append(binary.AppendUvarint(append(b, field<<3|2), uint64(len(value))), value...)
}
