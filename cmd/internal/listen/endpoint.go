package listen

import (
	"io/fs"
	"time"
)

// A Role says what an endpoint serves. All its endpoints share a [ConnLimit]. A process hands over its sockets by role.
type Role string

// An Endpoint is an address with the settings of its server. One server can serve equal endpoints.
type Endpoint struct {
	Role          Role
	Address       string      // host:port, or unix:/path
	Mode          fs.FileMode // of the file of a Unix socket
	Certificate   Certificate // the zero Certificate means no TLS
	ProxyProtocol bool        // connections of trusted peers begin with a header of the PROXY protocol
	ReusePort     bool        // other processes of the same user may listen on the port, too (SO_REUSEPORT)
	HTTP          HTTP
}

// HTTP has the settings of an HTTP endpoint. 0 means no bound.
type HTTP struct {
	H2C               bool          // HTTP/2 without TLS, in addition to HTTP/1.1
	ReadHeaderTimeout time.Duration // also for a TLS handshake and for a header of the PROXY protocol
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
