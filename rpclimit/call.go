package rpclimit

import (
	"context"
	"net/netip"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// A Call describes a remote procedure call for the functions of a [Limit]. Fronts make Calls. A Call may be copied and
// stored.
type Call struct {
	// Context is the context of the call; nil means context.Background(). In a server, it ends when the client has
	// gone.
	Context context.Context
	// Method is the method's full name, "/package.Service/Method".
	Method string
	// Unknown is set if the server does not have the method and passes the call on, as a proxy does. Then the client
	// may have made up the name.
	Unknown bool
	// Peer is the address of the client's end of a server's connection. It is the zero Addr for a transport without IP
	// addresses, such as a Unix socket, and in a client.
	Peer netip.Addr
	// Target is the target of a client's call, such as "dns:///api.example.com"; "" in a server.
	Target string
	// Message is the request message, or nil when a stream opens. The message must not be changed.
	Message any
	// Stream is set if the call is a stream, whose messages are decided one by one ([Limits.DecideMessage]).
	Stream bool
	// Metadata is the request metadata; nil if there is none.
	Metadata Metadata

	phase phase // whether the decision is about the call, its message or both
}

// phase is a set that says whether a decision is about a call, about a message, or about both.
type phase uint8

const (
	countsCalls phase = 1 << iota
	countsMessages
)

// Metadata is the metadata of a call.
type Metadata interface {
	// Values returns all values of a name in lower case. It decodes values of names that end in -bin; ok is false if
	// one cannot be decoded. The caller must not change the values.
	Values(ctx context.Context, name string) (values []string, ok bool)
}

// Value returns the value of a name in the metadata, or "" if the name is absent. ok is false if a value cannot be
// decoded, or if the name has several different values, because servers differ in which value they read. For
// authorization, all spellings of the scheme and the blanks give the same value, such as "Bearer V".
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

// A Code is a status code of gRPC. Connect has the same codes.
type Code uint32

// The codes that this package returns (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
const (
	OK                Code = 0
	Canceled          Code = 1
	DeadlineExceeded  Code = 4
	ResourceExhausted Code = 8
	Internal          Code = 13
	Unavailable       Code = 14
)

// FullMethod returns a method's name with a leading slash, which some transports let a client omit. It does not
// allocate for a name with the slash.
func FullMethod(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// ParsePeer parses an address with or without a port, such as "192.0.2.1:80" or "2001:db8::1". For any other text it
// returns the zero Addr. It does not allocate for an address with a port, nor for "", the address of some Unix sockets.
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
