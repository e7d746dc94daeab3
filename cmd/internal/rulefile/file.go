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

// A File is a rule file, converted and checked, with the defaults filled in. It must not be
// changed after Parse.
type File struct {
	Name           string // as it was given to Load or Parse
	Listen         []Listener
	Admin          *Admin    // nil for none
	Decide         *Decide   // nil for none
	Redis          *Redis    // nil for none
	Upstream       *Upstream // of requests that no route takes; nil for none
	Routes         []Route   // the first that matches takes a request
	TrustedProxies []netip.Prefix
	ClientIP       ClientIP
	AmbiguousPaths AmbiguousPaths
	Headers        Headers
	Response       Response
	CORS           *CORS // nil for none
	Server         Server
	Log            Log
	Exempt         []reading.Match // requests that no rule is for: see [reading.Match.IsCertain]
	Store          *Store          // nil for none
	State          string          // folder of the files that outlive the process; "" for none
	Rules          []Rule          // in the order of the file; at most MaxRules
	Tests          []Test          // what the file is expected to answer: weir check runs them
}

// Echo reports whether requests are answered by the built-in echo, because nothing is said
// about an upstream. With routes but no upstream a request that no route takes is answered
// 404.
func (f *File) Echo() bool { return f.Upstream == nil && len(f.Routes) == 0 }

// A Listener is an address to serve on. It speaks HTTP/1.1, and HTTP/2 with H2C or TLS.
type Listener struct {
	// Address is host:port, or unix:/path. Without a host it is all addresses of the machine, and port 0 is a free one.
	Address string
	Mode    fs.FileMode // of the file of a Unix socket; 0 for DefaultMode
	H2C     bool        // HTTP/2 without TLS, beside HTTP/1.1
	TLS     *TLS        // nil for none
	// ProxyProtocol says that connections of trusted proxies begin with a header of the PROXY protocol.
	ProxyProtocol bool
	// ReusePort lets other processes of the same user listen on the port, too (SO_REUSEPORT).
	ReusePort bool
}

// String returns the address and what is spoken there.
func (l Listener) String() string {
	spoken := "HTTP/1.1"
	switch {
	case l.TLS != nil:
		spoken = "TLS, HTTP/1.1 and HTTP/2"
	case l.H2C:
		spoken = "HTTP/1.1 and HTTP/2 without TLS"
	}
	return fmt.Sprintf("%s (%s)%s", l.Address, spoken, when(l.ReusePort, reusable))
}

// reusable is what Describe says of an address with ReusePort.
const reusable = ", beside other processes"

// TLS names the files of a certificate. Relative names in a file are made relative to its
// directory. Load has read them once.
type TLS struct{ CertFile, KeyFile string }

// Admin is where metrics and the like are served.
type Admin struct {
	Address     string // on a loopback address unless AllowRemote
	Mode        fs.FileMode
	AllowRemote bool
	Pprof       bool
	Keys        admin.Keys
	Hosts       []string // names by which the page may be asked, in addition to localhost and addresses; in lower case
	// TokenFile has the tokens that may do everything, ReadTokenFile those that may only look; "" for none.
	TokenFile, ReadTokenFile string
}

// Decide is where other proxies ask whether a request may pass. A caller that reaches it is believed what it says
// about requests.
type Decide struct {
	Address   string
	Mode      fs.FileMode
	ReusePort bool
}

// Listener is the address, where HTTP/1.1 is spoken.
func (d *Decide) Listener() Listener {
	return Listener{Address: d.Address, Mode: d.Mode, ReusePort: d.ReusePort}
}

// An Upstream is one server to pass requests to, or several of which each request has one.
type Upstream struct {
	proxy.Servers
	PassHeaders []string // canonical names of fields that are passed on although they mislead servers
}

// String returns the targets of an upstream.
func (u *Upstream) String() string {
	names := make([]string, len(u.Targets))
	for i, t := range u.Targets {
		names[i] = t.String()
	}
	return oneOf(names)
}

// A Route sends the requests that match to an upstream of their own.
type Route struct {
	Match    reading.Match
	Upstream Upstream
}

// ClientIP says where the address of a client is found and how much of it counts.
type ClientIP struct {
	From       From
	Header     string // with FromHeader
	IPv4Prefix int    // bits that count
	IPv6Prefix int
}

// From says where the address of a client is found. All but FromSocket are read only of
// requests that come from a trusted proxy.
type From string

// What From can be.
const (
	FromSocket        From = "socket"
	FromXForwardedFor From = "x-forwarded-for" // the default where there are trusted proxies
	FromForwarded     From = "forwarded"
	FromHeader        From = "header"
)

// Headers says which header fields tell a client about its limits.
type Headers string

// What Headers can be.
const (
	HeadersIETF    Headers = "ietf" // the default
	HeadersLegacy  Headers = "legacy"
	HeadersDraft06 Headers = "draft-06"
	HeadersBoth    Headers = "both" // ietf and legacy
	HeadersNone    Headers = "none"
)

// Response is how a refusal is answered.
type Response struct {
	Body        Body
	RetryJitter time.Duration // up to so much is added to Retry-After, by chance
	Refusal     Refusal       // of rules that say nothing else
}

// Body is the form of a refusal.
type Body string

// What Body can be.
const (
	BodyProblem Body = "problem" // application/problem+json, RFC 9457; the default
	BodyJSON    Body = "json"    // {"error": ..., "retryAfter": N}
)

// ByShare is the MaxConnectionsPerClient of a file that does not say it: an eighth of MaxConnections, 16 at the least.
const ByShare = -1

// ByOpenFiles is the MaxConnections of a file that does not say it: as many as the limit of open files allows.
const ByOpenFiles = -1

// Server bounds what clients may hold. 0 is no bound.
type Server struct {
	ReadHeaderTimeout time.Duration
	ReadTimeout       time.Duration
	WriteTimeout      time.Duration
	IdleTimeout       time.Duration
	ShutdownTimeout   time.Duration // for requests under way at the end
	ShutdownDelay     time.Duration // before that, not ready any more and still serving
	MaxHeaderBytes    int
	MaxConnections    int // of all listeners together; ByOpenFiles for as many as the limit of open files allows
	// MaxConnectionsPerClient is how many of them one client may have; an IPv6 /64 is one. ByShare for an eighth.
	MaxConnectionsPerClient int
	SendTimeout             time.Duration // that a client may take no byte of an answer
	MaxWaiting              int           // requests that wait for tokens at one time, of all rules together
	MinBodyRate             int           // of a request's body, in bytes a second; not for gRPC
}
