package grpclimit

import (
	"context"
	"net"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/grpclimit/internal/refusal"
	"github.com/weir-go/weir/rpclimit"
)

// incomingMetadata reads the metadata that a server received with a call. outgoingMetadata reads the metadata that a
// client sends.
type (
	incomingMetadata struct{}
	outgoingMetadata struct{}
)

// Values implements [rpclimit.Metadata].
func (incomingMetadata) Values(ctx context.Context, name string) ([]string, bool) {
	return metadata.ValueFromIncomingContext(ctx, name), true
}

// Values implements [rpclimit.Metadata].
func (outgoingMetadata) Values(ctx context.Context, name string) ([]string, bool) {
	md, _ := metadata.FromOutgoingContext(ctx)
	return md.Get(name), true
}

// serverCall returns the [rpclimit.Call] of a call that a server received.
func serverCall(ctx context.Context, method string) rpclimit.Call {
	return rpclimit.Call{Context: ctx, Method: rpclimit.FullMethod(method), Peer: peerOf(ctx), Metadata: incomingMetadata{}}
}

// peerOf returns the address of the peer, or the zero Addr if the peer has no address.
func peerOf(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return netip.Addr{}
	}
	switch addr := p.Addr.(type) {
	case *net.TCPAddr:
		return addr.AddrPort().Addr()
	case *net.UDPAddr:
		return addr.AddrPort().Addr()
	case *net.UnixAddr:
		return netip.Addr{}
	}
	// Behind net/http, gRPC's type of the peer's address contains text. On a Unix socket, the client chooses this text,
	// and may choose a text that looks like an address.
	if _, unix := p.LocalAddr.(*net.UnixAddr); unix {
		return netip.Addr{}
	}
	return rpclimit.ParsePeer(p.Addr.String())
}

// refusalError returns the error of a refused call.
func refusalError(res *rpclimit.Result) error {
	s := status.New(codes.Code(res.Code()), res.Reason())
	if details := refusal.Details(res); details != nil {
		if detailed, err := s.WithDetails(details...); err == nil { // err is always nil
			s = detailed
		}
	}
	return s.Err()
}

// pushback returns the trailer that controls the retries of clients, or nil if there is no trailer to send.
func pushback(res *rpclimit.Result) metadata.MD {
	value := refusal.Pushback(res)
	if value == "" {
		return nil
	}
	return metadata.MD{refusal.PushbackName: {value}}
}

func codeOf(err error) rpclimit.Code {
	if s, ok := status.FromError(err); ok {
		return rpclimit.Code(s.Code())
	}
	return rpclimit.Code(status.FromContextError(err).Code())
}
