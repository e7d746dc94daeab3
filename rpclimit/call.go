package rpclimit

import (
	"context"
	"net/netip"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// A Call is what the functions of a [Limit] are told of a call. The fronts make it; it may be copied and kept.
type Call struct {
	// Context is that of the call; nil is context.Background(). A server's ends when the client has gone.
	Context context.Context
	// Method is the method's full name, "/package.Service/Method".
	Method string
	// Unknown says that the server has no method of this name, and passes the call on, as a proxy does. Then the
	// client may have made the name up.
	Unknown bool
	// Peer is the address of the connection that a server has the call from; the zero Addr of a Unix socket, of
	// another transport without IP addresses, and in a client.
	Peer netip.Addr
	// Target is what a client calls, such as "dns:///api.example.com"; "" in a server.
	Target string
	// Message is the request message; nil when a stream opens. It must not be changed.
	Message any
	// Stream says that the call is a stream, whose messages are decided on one by one ([Limits.DecideMessage]).
	Stream bool
	// Metadata is the request metadata; nil for none.
	Metadata Metadata

	phase phase // what is decided on
}

// phase says what a decision is about.
type phase uint8

const (
	countsCalls phase = 1 << iota
	countsMessages
)

// Metadata is the metadata of a call.
type Metadata interface {
	// Values returns all values of a name in lower case, those of a name ending in -bin decoded. It is not ok if they
	// cannot be decoded. The caller does not change them.
	Values(ctx context.Context, name string) (values []string, ok bool)
}

// Value returns the value of a name of metadata, "" if it is absent. It is not ok if the name has several values that
// differ, or that cannot be decoded: servers read the first, the last, or all of them, so none of them identifies
// the client. The value of authorization is "Bearer V" however the scheme and the blanks are written.
func (c Call) Value(name string) (value string, ok bool) {
	if c.Metadata == nil {
		return "", true
	}
	name = strings.ToLower(name)
	values, ok := c.Metadata.Values(c.Context, name)
	if !ok {
		return "", false
	}
	return spelling.OneLine(name, values)
}

// A Code is a status code of gRPC. Those of Connect are the same numbers.
type Code uint32

// The codes that this package gives (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
const (
	OK                Code = 0
	Canceled          Code = 1
	DeadlineExceeded  Code = 4
	ResourceExhausted Code = 8
	Internal          Code = 13
	Unavailable       Code = 14
)

// FullMethod returns a method's name with the slash in front that some transports let a client leave out. It does not
// allocate for a name that has one.
func FullMethod(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// ParsePeer returns the address in a text with or without a port, "192.0.2.1:80" or "2001:db8::1"; the zero Addr of any
// other text. It does not allocate for an address with a port, nor for "", which a Unix socket may have.
func ParsePeer(text string) netip.Addr {
	if text == "" {
		return netip.Addr{}
	}
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr()
	}
	addr, _ := netip.ParseAddr(text)
	return addr
}
