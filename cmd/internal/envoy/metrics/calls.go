package metrics

import (
	"context"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// Calls counts the calls of a gRPC server by method, and how long they took.
type Calls struct {
	mapping *Mapping
	methods sync.Map // name -> *method; the server's own, so that there are few
}

type method struct {
	name  string
	calls atomic.Uint64
	time  observer // nil: not wanted
	scale float64
}

// NewCalls makes Calls whose metrics are called as the mapping says.
func NewCalls(m *Mapping) *Calls { return &Calls{mapping: m} }

// Intercept is an interceptor of the server.
func (c *Calls) Intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	begun := time.Now()
	m := c.method(info.FullMethod)
	m.calls.Add(1)
	response, err := handle(ctx, request)
	if m.time != nil {
		m.time.Observe(float64(time.Since(begun)) / float64(time.Millisecond) * m.scale)
	}
	return response, err
}

func (c *Calls) method(full string) *method {
	if found, ok := c.methods.Load(full); ok {
		return found.(*method)
	}
	made := &method{name: "ratelimit_server." + path.Base(full)}
	made.time, made.scale = c.mapping.observer(made.name + ".response_time")
	found, _ := c.methods.LoadOrStore(full, made)
	return found.(*method)
}

// all calls a function for each method.
func (c *Calls) all(each func(*method)) {
	c.methods.Range(func(_, found any) bool {
		each(found.(*method))
		return true
	})
}

// Counters returns what reads all counters: those of the service and the numbers of calls.
func Counters(service *envoy.Service, calls *Calls) func() []envoy.Counter {
	return func() []envoy.Counter { return append(service.Counters(), calls.counters()...) }
}

// counters are the numbers of calls.
func (c *Calls) counters() (all []envoy.Counter) {
	c.all(func(m *method) {
		all = append(all, envoy.Counter{Name: m.name + ".total_requests", Value: m.calls.Load()})
	})
	return all
}

// collect sends the times.
func (c *Calls) collect(to chan<- prometheus.Metric) {
	c.all(func(m *method) {
		if m.time != nil {
			to <- m.time
		}
	})
}
