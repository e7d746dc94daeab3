package listen

import (
	"io/fs"
	"time"
)

// A Role says what an endpoint serves. All endpoints of a role share a [ConnLimit]. A process that hands over its
// sockets names them by their roles.
type Role string

// An Endpoint is an address and the settings with which it is served. One server can serve two endpoints that are
// equal.
type Endpoint struct {
	Role          Role
	Address       string      // host:port, or unix:/path
	Mode          fs.FileMode // of the file of a Unix socket
	Certificate   Certificate // the zero value for no TLS
	ProxyProtocol bool        // connections of trusted peers begin with a header of the PROXY protocol
	ReusePort     bool        // other processes of the same user may listen on the port, too (SO_REUSEPORT)
	HTTP          HTTP
}

// HTTP has the settings of an HTTP endpoint. 0 means no bound.
type HTTP struct {
	H2C               bool          // HTTP/2 without TLS, in addition to HTTP/1.1
	ReadHeaderTimeout time.Duration // for a TLS handshake and a header of the PROXY protocol, too
	ReadTimeout       time.Duration // for the body of a request
	WriteTimeout      time.Duration // for an answer
	SendTimeout       time.Duration // how long a client may accept no byte of an answer
	IdleTimeout       time.Duration
	MaxHeaderBytes    int
}

// A Certificate has the files of a TLS certificate.
type Certificate struct {
	CertFile, KeyFile string // in PEM
}
