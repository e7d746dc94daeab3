package envoy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/envoy/kuadrant"
	"github.com/weir-go/weir/cmd/internal/promisetest"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/limits/spec"
	"github.com/weir-go/weir/redislimit"
)

// TestConformance runs the cases of package conformance over loopback. Its client acts like Envoy's rate limit filter:
// it sends a descriptor for each limit, obeys the answer, and gives hits back at the end of a request
// (apply_on_stream_done).
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Front{Name: "weir-envoy", Promise: promisetest.Promise(time.Second, nil), Start: startFilter})
}

// A filter is Envoy's rate limit filter with a service behind it.
type filter struct {
	env     *conformance.Env
	service *Service
	conn    *grpc.ClientConn
	client  rlsv3.RateLimitServiceClient
	stop    func()

	mu     sync.Mutex
	config conformance.Config
}

func startFilter(env *conformance.Env, c conformance.Config) (conformance.Server, error) {
	f := &filter{env: env, config: c}
	compiled, err := f.compile(c)
	if err != nil {
		return nil, err
	}
	o := Options{MaxKeys: c.Limits[0].Room(), Overflow: c.Limits[0].Overflow, Clock: env.Now}
	stop := func() {}
	if c.Store != nil {
		o.Clock = nil
		o.OnLoss, o.Replicas = losses[c.OnLoss], c.Nodes
		options := []redislimit.ClientOption{redislimit.Timeout(c.Timeout())}
		if o.OnLoss != Closed {
			options = append(options, redislimit.JoinLater())
		}
		if o.Store, err = redislimit.Open(env.T.Context(), "redis://"+c.Store.Address(), options...); err != nil {
			return nil, err
		}
		stop = func() { _ = o.Store.Close() }
	}
	if f.service, err = New(o); err == nil {
		err = f.service.SetConfig(compiled)
	}
	if err != nil {
		stop()
		return nil, err
	}
	f.serve(stop)
	return f, nil
}

var losses = map[conformance.Loss]Loss{conformance.Closed: Closed, conformance.Share: Share, conformance.Open: Open}

func (f *filter) serve(stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.env.T.Fatal(err)
	}
	server := grpc.NewServer()
	rlsv3.RegisterRateLimitServiceServer(server, f.service)
	kuadrant.Register(server, f.service.Kuadrant())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		f.env.T.Fatal(err)
	}
	f.conn, f.client = conn, rlsv3.NewRateLimitServiceClient(conn)
	f.stop = func() {
		_ = conn.Close()
		server.Stop()
		<-served
		_ = f.service.Close()
		stop()
	}
}

func (f *filter) Close() { f.stop() }

// Reload replaces only the rules. The program reads its other settings only at the start, so they cannot change.
func (f *filter) Reload(c conformance.Config) error {
	was, is := f.config.Limits[0], c.Limits[0]
	if was.Room() != is.Room() || was.Overflow != is.Overflow {
		return fmt.Errorf("%w: MAX_KEYS is read at the start", conformance.ErrUnsupported)
	}
	compiled, err := f.compile(c)
	if err == nil {
		err = f.service.SetConfig(compiled)
	}
	if err == nil {
		f.mu.Lock()
		f.config = c
		f.mu.Unlock()
	}
	return err
}

// compile makes the rules of a configuration. A limit becomes a descriptor of a client or user. A tier becomes a
// descriptor below it.
func (f *filter) compile(c conformance.Config) (*config.Config, error) {
	var b strings.Builder
	b.WriteString("domain: d\nall_or_nothing: true\ndescriptors:\n")
	for _, l := range c.Limits {
		if l.Spread || l.Concurrency > 0 || l.MaxWait > 0 || l.Aligned || l.IPv6Prefix != 0 || c.Dir != "" || c.Store != nil && !l.Stored {
			return nil, fmt.Errorf("%w: %+v", conformance.ErrUnsupported, l)
		}
		numbers := rateLimit(l.Algorithm, l.Numbers)
		if l.Users != nil {
			users := filepath.Join(f.env.T.TempDir(), "users.csv")
			if err := l.WriteUsers(users); err != nil {
				return nil, err
			}
			numbers = strings.TrimSuffix(numbers, "}") + fmt.Sprintf(", quotas: {file: %q}}", users)
		}
		fmt.Fprintf(&b, "  - key: %s\n    shadow_mode: %v\n    rate_limit: %s\n", l.Name, l.Shadow, numbers)
		if len(l.Tiers) > 0 {
			fmt.Fprintf(&b, "    descriptors:\n      - key: tier\n        rate_limit: %s\n", rateLimit(l.Algorithm, l.Numbers))
		}
		for _, t := range l.Tiers {
			fmt.Fprintf(&b, "      - key: tier\n        value: %s\n        rate_limit: %s\n", t.Name, rateLimit(l.Algorithm, t.Numbers))
		}
	}
	document, err := config.Parse("conformance.yaml", []byte(b.String()))
	if err != nil {
		return nil, err
	}
	return config.Compile([]*config.Document{document}, config.Options{})
}

func rateLimit(a engine.Algorithm, n conformance.Numbers) string {
	switch {
	case n.Constant == conformance.Unlimited:
		return "{unlimited: true}"
	case n.Constant == conformance.Blocked:
		return "{unit: hour, requests_per_unit: 0}"
	case a == engine.NoAlgorithm:
		a = engine.AlgorithmTokenBucket
	}
	name := spec.Name(a)
	if n.Calendar != 0 {
		return fmt.Sprintf("{unit: %v, requests_per_unit: %d, zone: %s}", n.Calendar, n.N, cmp.Or(n.Zone, "UTC"))
	}
	text := fmt.Sprintf("{period: %v, requests_per_unit: %d, algorithm: %s", n.Per, n.N, name)
	if a == engine.AlgorithmTokenBucket {
		text += fmt.Sprintf(", burst: %d", n.Burst)
	}
	return text + "}"
}

// ask returns a rate limit request for q, and the names of its limits. If holds is true, the request includes only
// limits that hold an estimate. Otherwise it includes only the other limits.
func (f *filter) ask(q conformance.Request, holds bool) (request *rlsv3.RateLimitRequest, names []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	request = &rlsv3.RateLimitRequest{Domain: "d"}
	for _, l := range f.config.Limits {
		value := q.Client
		if l.Key == conformance.User {
			value = q.User
		}
		if l.Path != "" && l.Path != q.Path || value == "" || l.Hold != holds {
			continue
		}
		one := &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: l.Name, Value: value}}}
		if len(l.Tiers) > 0 && q.Tier != "" {
			one.Entries = append(one.Entries, &commonv3.RateLimitDescriptor_Entry{Key: "tier", Value: q.Tier})
		}
		if l.Cost && !holds {
			one.HitsAddend = wrapperspb.UInt64(q.Takes())
		}
		if l.Quota && q.Quota != nil {
			if q.Quota.Burst > math.MaxUint32 || q.Quota.Constant == conformance.Unlimited {
				return nil, nil, fmt.Errorf("%w: a limit of %+v in a request", conformance.ErrUnsupported, *q.Quota)
			}
			one.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(q.Quota.Burst), Unit: typev3.RateLimitUnit_HOUR}
		}
		request.Descriptors, names = append(request.Descriptors, one), append(names, l.Name)
	}
	return request, names, nil
}

func (f *filter) refund(q conformance.Request, request *rlsv3.RateLimitRequest, names []string) *rlsv3.RateLimitRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	back := &rlsv3.RateLimitRequest{Domain: "d"}
	for _, l := range f.config.Limits {
		for i, name := range names {
			if name == l.Name && l.Refund == q.Ends {
				request.Descriptors[i].IsNegativeHits = true
				back.Descriptors = append(back.Descriptors, request.Descriptors[i])
			}
		}
	}
	return back
}

// Send sends a request. If a limit holds an estimate, Send acts like a gateway with Kuadrant. It reserves the estimate,
// checks the other limits, and commits the cost. If another limit refuses, it commits 0.
func (f *filter) Send(ctx context.Context, q conformance.Request) (a conformance.Answer) {
	request, names, err := f.ask(q, true)
	if err != nil || len(names) == 0 {
		return f.send(ctx, q)
	}
	reserve := &kuadrant.ReserveRequest{Domain: request.Domain, Descriptors: request.Descriptors, Amount: q.Takes()}
	held, committed := new(kuadrant.ReserveResponse), new(kuadrant.CommitResponse)
	switch err := f.conn.Invoke(ctx, "/"+kuadrant.Name+"/Reserve", reserve, held); {
	case err != nil:
		return conformance.Answer{Failed: true}
	case held.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT:
		return conformance.Answer{Refused: names}
	}
	commit := &kuadrant.CommitRequest{Domain: request.Domain, Descriptors: request.Descriptors, ReservationId: held.GetReservationId()}
	if a = f.send(ctx, q); a.Admitted {
		commit.ActualAmount = q.Actual
	}
	err = f.conn.Invoke(context.WithoutCancel(ctx), "/"+kuadrant.Name+"/Commit", commit, committed)
	a.Err = errors.Join(a.Err, err)
	return a
}

func (f *filter) send(ctx context.Context, q conformance.Request) (a conformance.Answer) {
	request, names, err := f.ask(q, false)
	if err != nil {
		return conformance.Answer{Err: err}
	}
	if len(names) > 0 {
		response, err := f.client.ShouldRateLimit(ctx, request)
		switch {
		case err != nil && f.config.OnLoss == conformance.Open: // Envoy's failure_mode_deny is false
		case err != nil:
			return conformance.Answer{Failed: true}
		case response.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT:
			for i, status := range response.GetStatuses() {
				if status.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT {
					a.Refused = append(a.Refused, names[i])
					a.RetryAfter = max(a.RetryAfter, status.GetDurationUntilReset().AsDuration())
				}
			}
			return a
		}
	}
	_, a.Err = f.env.Serve(ctx, q.ID)
	a.Admitted = a.Err == nil
	if back := f.refund(q, request, names); a.Admitted && len(back.GetDescriptors()) > 0 {
		_, err := f.client.ShouldRateLimit(ctx, back)
		a.Err = errors.Join(a.Err, err)
	}
	return a
}
