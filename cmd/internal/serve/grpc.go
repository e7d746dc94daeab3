package serve

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weir-go/weir/httplimit"
)

// The gRPC status codes of answers that are weir's own.
const (
	grpcInvalidArgument  = 3
	grpcDeadlineExceeded = 4
	grpcUnimplemented    = 12
	grpcInternal         = 13
	grpcUnavailable      = 14
)

// failGRPC answers a gRPC call that cannot be served: the gRPC status among the headers, and no message.
func failGRPC(w http.ResponseWriter, code int, detail string) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(code))
	h.Set("Grpc-Message", url.PathEscape(detail)) // gRPC wants all but printable ASCII encoded, and allows more
	w.WriteHeader(http.StatusOK)
}

// grpcCode returns the gRPC status of an HTTP status.
func grpcCode(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestTimeout:
		return grpcInvalidArgument
	case http.StatusNotFound:
		return grpcUnimplemented
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return grpcUnavailable
	}
	return grpcInternal
}

// grpcDeadline returns when the client of a gRPC call gives up; the zero time if it does not say.
//
// The upstream gets the same timeout and ends the call by itself when it is over, perhaps before the client has. So an
// error after the deadline is not a failure of the upstream.
func grpcDeadline(r *http.Request) time.Time {
	told := r.Header["Grpc-Timeout"]
	if len(told) == 0 {
		return time.Time{}
	}
	text := told[0]
	if len(text) < 2 || len(text) > 9 || !httplimit.IsGRPC(r) {
		return time.Time{}
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 63)
	if err != nil {
		return time.Time{}
	}
	var unit time.Duration
	switch text[len(text)-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return time.Time{}
	}
	if n > uint64(24*365*time.Hour/unit) { // also bounds what Add computes with
		return time.Time{}
	}
	return time.Now().Add(time.Duration(n) * unit)
}
