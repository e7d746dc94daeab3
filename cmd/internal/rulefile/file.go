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
	Name           string // as given to Load or Parse
	Listen         []Listener
	Admin          *Admin    // nil for none
	Decide         *Decide   // nil for none
	Redis          *Redis    // nil for none
	Upstream       *Upstream // for requests that match no route; nil for none
	Routes         []Route   // the first that matches takes a request
	TrustedProxies []netip.Prefix
	ClientIP       ClientIP
	AmbiguousPaths AmbiguousPaths
	Headers        Headers
	Response       Response
	CORS           *CORS // nil for none
	Server         Server
	Log            Log
	Exempt         []reading.Match // requests to which no rule applies: see [reading.Match.IsCertain]
	Store          *Store          // nil for none
	State          string          // folder of files that outlive the process; "" for none
	Rules          []Rule          // in the order of the file; at most MaxRules
	Tests          []Test          // expected answers, for weir check
}

// Echo reports whether the built-in echo answers requests, because the file has no upstream and no routes. With routes
// but no upstream, a request that matches no route is answered 404.
func (f *File) Echo() bool { return f.Upstream == nil && len(f.Routes) == 0 }

// A Listener is an address to serve on, with HTTP/1.1, and with HTTP/2 if it has H2C or TLS.
type Listener struct {
	// Address is host:port, or unix:/path. Without a host it means all addresses of the machine. Port 0 means any free
	// port.
	Address string
	Mode    fs.FileMode // of the file of a Unix socket; 0 for DefaultMode
	H2C     bool        // HTTP/2 without TLS, in addition to HTTP/1.1
	TLS     *TLS        // nil for none
	// ProxyProtocol says that connections of trusted proxies start with a header of the PROXY protocol.
	ProxyProtocol bool
	// ReusePort lets other processes of the same user also listen on the port (SO_REUSEPORT).
	ReusePort bool
}

// String returns the address and its protocols.
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

// reusable is Describe's text for an address with ReusePort.
const reusable = ", beside other processes"

// TLS names the files of a certificate. Relative names are made relative to the directory of the rule file. Load has
// read the files once.
type TLS struct{ CertFile, KeyFile string }

// Admin has the settings of the administrator's endpoint, which serves metrics, for example.
type Admin struct {
	Address     string // on a loopback address unless AllowRemote
	Mode        fs.FileMode
	AllowRemote bool
	Pprof       bool
	Keys        admin.Keys
	Hosts       []string // other names for the page than localhost and addresses; in lower case
	// TokenFile has the tokens that may do everything, ReadTokenFile those that may only read; "" for none.
	TokenFile, ReadTokenFile string
}

// Decide has the settings of the address at which other proxies ask whether a request may pass. The facts that a caller
// of this listener reports about requests are trusted.
type Decide struct {
	Address   string
	Mode      fs.FileMode
	ReusePort bool
}

// Listener returns the address, with HTTP/1.1.
func (d *Decide) Listener() Listener {
	return Listener{Address: d.Address, Mode: d.Mode, ReusePort: d.ReusePort}
}

// An Upstream is a server that gets requests, or several servers, one of which gets each request.
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

// A Route sends the requests that match it to an upstream of its own.
type Route struct {
	Match    reading.Match
	Upstream Upstream
}

// ClientIP says where to find the address of a client, and how many of its bits count.
type ClientIP struct {
	From       From
	Header     string // with FromHeader
	IPv4Prefix int    // bits that count
	IPv6Prefix int
}

// From says where to find the address of a client. All values except FromSocket are used only for requests from a
// trusted proxy.
type From string

// What From can be.
const (
	FromSocket        From = "socket"
	FromXForwardedFor From = "x-forwarded-for" // the default if there are trusted proxies
	FromForwarded     From = "forwarded"
	FromHeader        From = "header"
)

// Headers says which header fields report limits to a client.
type Headers string

// What Headers can be.
const (
	HeadersIETF    Headers = "ietf" // the default
	HeadersLegacy  Headers = "legacy"
	HeadersDraft06 Headers = "draft-06"
	HeadersBoth    Headers = "both" // ietf and legacy
	HeadersNone    Headers = "none"
)

// Response says how a refusal is answered.
type Response struct {
	Body        Body
	RetryJitter time.Duration // the most that is added to Retry-After, at random
	Refusal     Refusal       // for rules without their own
}

// Body is the form of a refusal.
type Body string

// What Body can be.
const (
	BodyProblem Body = "problem" // application/problem+json, RFC 9457; the default
	BodyJSON    Body = "json"    // {"error": ..., "retryAfter": N}
)

// ByShare is the MaxConnectionsPerClient of a file that does not set it: an eighth of MaxConnections, at least 16.
const ByShare = -1

// ByOpenFiles is the MaxConnections of a file that does not set it: as many as the limit of open files allows.
const ByOpenFiles = -1

// Server bounds what clients may use. 0 means no bound.
type Server struct {
	ReadHeaderTimeout time.Duration
	ReadTimeout       time.Duration
	WriteTimeout      time.Duration
	IdleTimeout       time.Duration
	ShutdownTimeout   time.Duration // for requests in progress at the end
	ShutdownDelay     time.Duration // before that: not ready any more, but still serving
	MaxHeaderBytes    int
	MaxConnections    int // of all listeners together; ByOpenFiles: as the limit of open files allows
	// MaxConnectionsPerClient is how many of these connections one client may have; an IPv6 /64 is one client. ByShare
	// means an eighth.
	MaxConnectionsPerClient int
	SendTimeout             time.Duration // how long a client may accept no byte of an answer
	MaxWaiting              int           // requests of all rules that may wait for tokens at a time
	MinBodyRate             int           // of a request's body, in bytes a second; not for gRPC
}
