package rulefile

import (
	"fmt"
	"io/fs"
	"net/netip"
	"time"

	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/httplimit/reading"
)

// A File is a rule file, converted and checked, with the defaults. It must not change after Parse has returned it.
type File struct {
	Name           string // as it was given to Load or Parse
	Listen         []Listener
	Admin          *Admin    // nil for none
	Decide         *Decide   // nil for none
	Redis          *Redis    // nil for none
	Upstream       *Upstream // for requests that match no route; nil for none
	Routes         []Route   // the first route that matches a request is used
	TrustedProxies []netip.Prefix
	ClientIP       ClientIP
	AmbiguousPaths AmbiguousPaths
	Headers        Headers
	Response       Response
	CORS           *CORS // nil for none
	Server         Server
	Log            Log
	Exempt         []reading.Match // requests to which no rule applies; see [reading.Match.IsCertain]
	Store          *Store          // nil for none
	State          string          // folder of files that outlive the process; "" for none
	Rules          []Rule          // in the order of the file; at most MaxRules
	Tests          []Test          // expected answers, for weir check
}

// Echo reports whether the file has no upstream and no routes. The built-in echo then answers requests. If a file has
// routes but no upstream, a request that matches no route is answered 404.
func (f *File) Echo() bool { return f.Upstream == nil && len(f.Routes) == 0 }

// A Listener is an address on which weir serves HTTP/1.1, and also HTTP/2 with H2C or TLS.
type Listener struct {
	// Address is host:port, or unix:/path. No host means all addresses of the machine, and port 0 any free port.
	Address string
	Mode    fs.FileMode // of the file of a Unix socket; 0 for DefaultMode
	H2C     bool        // HTTP/2 without TLS, in addition to HTTP/1.1
	TLS     *TLS        // nil for none
	// With ProxyProtocol, connections of trusted proxies begin with a PROXY protocol header.
	ProxyProtocol bool
	// With ReusePort, other processes of the same user may listen on the port, too (SO_REUSEPORT).
	ReusePort bool
}

// String returns the address and its protocols.
func (l Listener) String() string {
	protocols := "HTTP/1.1"
	switch {
	case l.TLS != nil:
		protocols = "TLS, HTTP/1.1 and HTTP/2"
	case l.H2C:
		protocols = "HTTP/1.1 and HTTP/2 without TLS"
	}
	return fmt.Sprintf("%s (%s)%s", l.Address, protocols, textIf(l.ReusePort, reusePortText))
}

const reusePortText = ", beside other processes"

// TLS has the names of the files of a certificate. In the rule file, a relative name is relative to the directory of
// the rule file. CertFile and KeyFile include this directory. Load reads both files to check them.
type TLS struct{ CertFile, KeyFile string }

// Admin has the settings of the administrator's endpoint.
type Admin struct {
	Address     string // a loopback address, unless AllowRemote is set
	Mode        fs.FileMode
	AllowRemote bool
	Pprof       bool
	Keys        admin.Keys
	Hosts       []string // names for the page, in lower case, in addition to localhost and addresses
	// TokenFile has tokens that may do everything, and ReadTokenFile tokens that may only read. "" means no file.
	TokenFile, ReadTokenFile string
}

// Decide has the settings of the listener on which other proxies ask whether a request may pass. weir trusts what its
// callers report about requests.
type Decide struct {
	Address   string
	Mode      fs.FileMode
	ReusePort bool
}

// Listener returns the address as a Listener for HTTP/1.1.
func (d *Decide) Listener() Listener {
	return Listener{Address: d.Address, Mode: d.Mode, ReusePort: d.ReusePort}
}

// An Upstream has one or several servers. Each request is passed to one of them.
type Upstream struct {
	proxy.Servers
	PassHeaders []string // canonical names of fields that are passed on although they can mislead servers
}

// String returns the targets.
func (u *Upstream) String() string {
	names := make([]string, len(u.Targets))
	for i, t := range u.Targets {
		names[i] = t.String()
	}
	return joinOr(names)
}

// A Route passes matching requests to another upstream.
type Route struct {
	Match    reading.Match
	Upstream Upstream
}

// ClientIP says where a client's address is found, and how many of its bits count.
type ClientIP struct {
	From       From
	Header     string // with FromHeader
	IPv4Prefix int    // number of bits that count
	IPv6Prefix int
}

// From says where a client's address is found. All values except FromSocket need a trusted proxy.
type From string

const (
	FromSocket        From = "socket"
	FromXForwardedFor From = "x-forwarded-for" // the default if there are trusted proxies
	FromForwarded     From = "forwarded"
	FromHeader        From = "header"
)

// Headers says which header fields report limits to a client.
type Headers string

const (
	HeadersIETF    Headers = "ietf" // the default
	HeadersLegacy  Headers = "legacy"
	HeadersDraft06 Headers = "draft-06"
	HeadersBoth    Headers = "both" // ietf and legacy
	HeadersNone    Headers = "none"
)

// Response describes the answer to a refused request.
type Response struct {
	Body        Body
	RetryJitter time.Duration // at most this much is added to Retry-After, at random
	Refusal     Refusal       // for rules without a Refusal
}

// Body is the form of a refusal's body.
type Body string

const (
	BodyProblem Body = "problem" // application/problem+json, RFC 9457; the default
	BodyJSON    Body = "json"    // {"error": ..., "retryAfter": N}
)

// ByShare is the default of MaxConnectionsPerClient: an eighth of MaxConnections, but at least 16.
const ByShare = -1

// ByOpenFiles is the default of MaxConnections: about half of the files that the process may open.
const ByOpenFiles = -1

// Server bounds what clients may use. 0 means no bound.
type Server struct {
	ReadHeaderTimeout time.Duration
	ReadTimeout       time.Duration
	WriteTimeout      time.Duration
	IdleTimeout       time.Duration
	ShutdownTimeout   time.Duration // for requests in progress when the server ends
	ShutdownDelay     time.Duration // time before ShutdownTimeout, in which the server is not ready but still serves
	MaxHeaderBytes    int
	MaxConnections    int // of all listeners together; may be ByOpenFiles
	// MaxConnectionsPerClient is how many of these connections one client may have, or ByShare. An IPv6 /64 is one
	// client.
	MaxConnectionsPerClient int
	SendTimeout             time.Duration // how long a client may accept no byte of an answer
	MaxWaiting              int           // how many requests of all rules together may wait for tokens at a time
	MinBodyRate             int           // minimum rate of the body of a request, in bytes per second; not for gRPC
}
