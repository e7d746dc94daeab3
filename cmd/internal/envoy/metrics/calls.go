package metrics

import (
	"context"
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/weir-go/weir/cmd/internal/envoy"
)

// Calls counts the calls of a gRPC server by method, and measures how long they take.
type Calls struct {
	mapping *Mapping
	samples bool     // durations are stored for statsd
	methods sync.Map // name -> *method; only methods of the server, so there are few
}

type method struct {
	name  string
	calls atomic.Uint64
	time  observer // nil: not wanted
	scale float64
	kept  *sample // nil: not wanted
}

// NewCalls returns Calls whose metrics have the names from the mapping.
func NewCalls(m *Mapping) *Calls { return &Calls{mapping: m} }

// ForStatsd makes c store the durations that Times returns.
func (c *Calls) ForStatsd() *Calls {
	c.samples = true
	return c
}

// A Timing has the durations of a sample of the calls of a method, in milliseconds. Rate is the share of the method's
// calls that are in the sample.
type Timing struct {
	Name   string // such as "ratelimit_server.ShouldRateLimit.response_time"
	Values []float64
	Rate   float64 // above 0, at most 1
}

// Times returns the durations of the calls since Times was last called.
func (c *Calls) Times() (all []Timing) {
	c.all(func(m *method) {
		if values, of := m.kept.take(); len(values) > 0 {
			all = append(all, Timing{m.name + ".response_time", values, float64(len(values)) / float64(of)})
		}
	})
	return all
}

// maxSample bounds the number of durations that are stored between two flushes.
const maxSample = 500

// A sample stores some of the durations that it gets, each with the same probability. It is safe for concurrent use. A
// nil sample stores nothing.
type sample struct {
	mu     sync.Mutex
	values []float64
	told   uint64
}

func (s *sample) add(value float64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told++
	if len(s.values) < maxSample {
		s.values = append(s.values, value)
	} else if at := rand.Uint64N(s.told); at < maxSample {
		s.values[at] = value
	}
}

// take returns the stored durations, and the number of durations observed since the last take. Then it starts over.
func (s *sample) take() (values []float64, of uint64) {
	if s == nil {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	values, of = s.values, s.told
	s.values, s.told = nil, 0
	return values, of
}

// Intercept is an interceptor of the server.
func (c *Calls) Intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	begun := time.Now()
	m := c.method(info.FullMethod)
	m.calls.Add(1)
	response, err := handle(ctx, request)
	took := float64(time.Since(begun)) / float64(time.Millisecond)
	if m.time != nil {
		m.time.Observe(took * m.scale)
	}
	m.kept.add(took)
	return response, err
}

func (c *Calls) method(full string) *method {
	if found, ok := c.methods.Load(full); ok {
		return found.(*method)
	}
	made := &method{name: "ratelimit_server." + path.Base(full)}
	made.time, made.scale = c.mapping.observer(made.name + ".response_time")
	if c.samples {
		made.kept = &sample{}
	}
	found, _ := c.methods.LoadOrStore(full, made)
	return found.(*method)
}

func (c *Calls) all(each func(*method)) {
	c.methods.Range(func(_, found any) bool {
		each(found.(*method))
		return true
	})
}

// Counters returns a function that reads the counters of the service and the numbers of calls.
func Counters(service *envoy.Service, calls *Calls) func() []envoy.Counter {
	return func() []envoy.Counter { return append(service.Counters(), calls.counters()...) }
}

func (c *Calls) counters() (all []envoy.Counter) {
	c.all(func(m *method) {
		all = append(all, envoy.Counter{Name: m.name + ".total_requests", Value: m.calls.Load()})
	})
	return all
}

func (c *Calls) collect(to chan<- prometheus.Metric) {
	c.all(func(m *method) {
		if m.time != nil {
			to <- m.time
		}
	})
}
