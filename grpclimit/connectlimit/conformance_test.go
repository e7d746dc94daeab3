package connectlimit_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-go/weir/grpclimit/connectlimit"
	"github.com/weir-go/weir/grpclimit/internal/promisetest"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/overhttp"
	"github.com/weir-go/weir/internal/conformance/rpcfront"
	"github.com/weir-go/weir/rpclimit"
)

// TestConformance runs the conformance cases without a store. Module redislimit runs the cases with a store.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Front{
		Name: "Connect", Promise: promisetest.Promise(1, nil), Runs: rpcfront.Runs, InBubble: rpcfront.InBubble,
		Start: func(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
			s := &conforming{env: env, limiters: conformance.Limiters{Env: env}}
			if err := s.Reload(c); err != nil {
				return nil, err
			}
			s.start()
			return s, nil
		},
	})
}

// conforming is a server whose limits can change, together with clients of this server.
type conforming struct {
	*overhttp.Client
	env      *conformance.Env
	limiters conformance.Limiters
	handler  atomic.Pointer[http.ServeMux]
	clients  map[string]*connect.Client[emptypb.Empty, emptypb.Empty] // by path
}

func (s *conforming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handler.Load().ServeHTTP(w, r)
}

func (s *conforming) Reload(c conformance.Config) error {
	limits, err := rpcfront.Limits(&s.limiters, c)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, method := range rpcfront.Methods {
		mux.Handle(method, connect.NewUnaryHandler(method,
			func(ctx context.Context, r *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
				code := rpcfront.Serve(ctx, s.env, r.Header().Get(rpcfront.ID), c.Limits)
				if code != rpclimit.OK {
					return nil, connect.NewError(connect.Code(code), errors.New("as asked"))
				}
				return connect.NewResponse(&emptypb.Empty{}), nil
			}, connect.WithInterceptors(connectlimit.New(limits))))
	}
	s.handler.Store(mux)
	return nil
}

func (s *conforming) start() {
	s.Client = overhttp.Serve(s.env, s)
	s.clients = map[string]*connect.Client[emptypb.Empty, emptypb.Empty]{}
	for _, method := range rpcfront.Methods {
		s.clients[method] = connect.NewClient[emptypb.Empty, emptypb.Empty](s.HTTP(), s.URL()+method)
	}
}

func (s *conforming) Send(ctx context.Context, q conformance.Request) conformance.Answer {
	request := connect.NewRequest(&emptypb.Empty{})
	for name, value := range rpcfront.Metadata(q) {
		request.Header().Set(name, value)
	}
	_, err := s.clients[rpcfront.Method(q.Path)].CallUnary(ctx, request)
	if err == nil {
		return rpcfront.Code(rpclimit.OK, nil)
	}
	if q.Ends == conformance.Broken {
		return conformance.Answer{Err: err}
	}
	a := rpcfront.Code(rpclimit.Code(connect.CodeOf(err)), err)
	var failed *connect.Error
	if !errors.As(err, &failed) {
		return a
	}
	for _, detail := range failed.Details() {
		value, err := detail.Value()
		if err != nil {
			return conformance.Answer{Err: err}
		}
		switch value := value.(type) {
		case *errdetails.RetryInfo:
			a.RetryAfter = value.GetRetryDelay().AsDuration()
		case *errdetails.QuotaFailure:
			for _, v := range value.GetViolations() {
				a.Refused = append(a.Refused, v.GetQuotaId())
			}
		}
	}
	return a
}
