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
	// Context is the context of the call. nil means context.Background(). In a server, it ends when the client has
	// gone.
	Context context.Context
	// Method is the method's full name, "/package.Service/Method".
	Method string
	// Unknown is set if the server does not have the method and passes the call on, as a proxy does. In this case, the
	// client may have made up the name of the method.
	Unknown bool
	// Peer is the address of the client's end of a server's connection. For a transport without IP addresses, such as a
	// Unix socket, it is the zero Addr. In a client, it is also the zero Addr.
	Peer netip.Addr
	// Target is the target of a client's call, such as "dns:///api.example.com". In a server, it is "".
	Target string
	// Message is the request message, or nil when a stream opens. The message must not be changed.
	Message any
	// Stream is set if the call is a stream. Each message of a stream is decided separately ([Limits.DecideMessage]).
	Stream bool
	// Metadata is the request metadata; nil if there is none.
	Metadata Metadata

	phase phase // whether the decision is about the call, its message or both
}

// phase says what a decision is about: a call, a message, or both. It is a set of bits.
type phase uint8

const (
	countsCalls phase = 1 << iota
	countsMessages
)

// Metadata is the metadata of a call.
type Metadata interface {
	// Values returns all values of a name, which must be in lower case. It decodes values of names that end in -bin. If
	// one of them cannot be decoded, ok is false. The caller must not change the values.
	Values(ctx context.Context, name string) (values []string, ok bool)
}

// Value returns the value of a name in the metadata, or "" if the name is absent. ok is false if a value cannot be
// decoded. It is also false if the name has several different values, because servers differ in which value they read.
// For authorization, the spelling of the scheme and of the blanks does not matter: the value is, for example, "Bearer
// V".
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

// These are the codes that this package returns (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
const (
	OK                Code = 0
	Canceled          Code = 1
	DeadlineExceeded  Code = 4
	ResourceExhausted Code = 8
	Internal          Code = 13
	Unavailable       Code = 14
)

// FullMethod returns a method's name with a leading slash. Some transports let a client omit this slash. FullMethod
// does not allocate for a name with the slash.
func FullMethod(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// ParsePeer parses an address with or without a port, such as "192.0.2.1:80" or "2001:db8::1". For any other text, it
// returns the zero Addr. It does not allocate for an address with a port. It does not allocate for "" either, which is
// the address of some Unix sockets.
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
