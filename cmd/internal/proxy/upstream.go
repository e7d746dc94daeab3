package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"time"
)

// An Upstream has the servers to which requests are passed, settings for these requests, and a function that answers
// failures.
type Upstream struct {
	Servers
	Forwarding Forwarding
	Fail       func(http.ResponseWriter, *http.Request, Failure) // answers a request that is not served
}

// Servers has equivalent servers and the settings of the connections to them.
type Servers struct {
	Targets         []Target // at least one; no two are equal
	ConnectTimeout  time.Duration
	ResponseTimeout time.Duration // until the header of the answer; 0 for no bound
	KeepHost        bool          // pass on the client's Host instead of the host of the URL
	H2C             bool          // HTTP/2 without TLS
	IgnoreAbort     bool          // if a client has gone, its request continues until the header of the answer
	Health          *Health       // nil for no checks
}

// A Target is a server of an upstream.
type Target struct {
	URL    *url.URL // its path is put before the request's path
	Socket string   // the path of a Unix socket to connect to; "" for none
}

// String returns the target as in a rule file, without a password, for the log and metrics.
func (t Target) String() string {
	if t.Socket != "" {
		return "unix:" + t.Socket
	}
	return t.URL.Redacted()
}

// Health has the settings of health checks.
type Health struct {
	Path          string // may have a query
	Interval      time.Duration
	Timeout       time.Duration
	Passes, Fails int // number of checks in a row that bring a server back, and that take it out
}

// A Failure says why a request is not served.
type Failure struct {
	Status  int
	Detail  string // for the client; it does not name any machine
	Expired bool   // the deadline of a gRPC call is over
	Unsent  bool   // no server has received any of the request
}

func (u *Servers) mayHaveHTTP2() bool {
	return u.H2C || slices.ContainsFunc(u.Targets, func(t Target) bool { return t.URL.Scheme == "https" })
}
