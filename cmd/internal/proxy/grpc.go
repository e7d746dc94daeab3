package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weir-go/weir/httplimit"
)

// grpcTimeout returns the timeout that the client of a gRPC call has set. The result ok is false if the client has
// set none.
//
// The upstream gets the same timeout, and may end the call before the client does. So an error after this time is not a
// failure of the upstream.
func grpcTimeout(r *http.Request) (timeout time.Duration, ok bool) {
	values := r.Header["Grpc-Timeout"]
	if len(values) == 0 {
		return 0, false
	}
	text := values[0]
	if len(text) < 2 || len(text) > 9 || !httplimit.IsGRPC(r) {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 63)
	if err != nil {
		return 0, false
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
		return 0, false
	}
	if n > uint64(24*365*time.Hour/unit) { // also prevents an overflow below
		return 0, false
	}
	return time.Duration(n) * unit, true
}
