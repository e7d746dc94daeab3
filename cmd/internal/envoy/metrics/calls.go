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
	mapping     *Mapping
	keepSamples bool     // durations are stored for statsd
	methods     sync.Map // name -> *method; only methods of the server, so there are few
}

type method struct {
	name   string
	calls  atomic.Uint64
	timer  observer // nil: not wanted
	scale  float64
	sample *sample // nil: not wanted
}

// NewCalls returns Calls whose metrics have the names from the mapping.
func NewCalls(m *Mapping) *Calls { return &Calls{mapping: m} }

// ForStatsd makes c store the durations that Times returns.
func (c *Calls) ForStatsd() *Calls {
	c.keepSamples = true
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
func (c *Calls) Times() (timings []Timing) {
	c.forEach(func(m *method) {
		if values, count := m.sample.take(); len(values) > 0 {
			timings = append(timings, Timing{m.name + ".response_time", values, float64(len(values)) / float64(count)})
		}
	})
	return timings
}

// maxSample bounds the number of durations that are stored between two flushes.
const maxSample = 500

// A sample stores some of the durations that it gets, each with the same probability. It is safe for concurrent use. A
// nil sample stores nothing.
type sample struct {
	mu     sync.Mutex
	values []float64
	count  uint64
}

func (s *sample) add(value float64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if len(s.values) < maxSample {
		s.values = append(s.values, value)
	} else if i := rand.Uint64N(s.count); i < maxSample {
		s.values[i] = value
	}
}

// take returns the stored durations, and the number of durations observed since the last take. Then it starts over.
func (s *sample) take() (values []float64, count uint64) {
	if s == nil {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	values, count = s.values, s.count
	s.values, s.count = nil, 0
	return values, count
}

// Intercept is an interceptor of the server.
func (c *Calls) Intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	start := time.Now()
	m := c.method(info.FullMethod)
	m.calls.Add(1)
	response, err := handle(ctx, request)
	duration := float64(time.Since(start)) / float64(time.Millisecond)
	if m.timer != nil {
		m.timer.Observe(duration * m.scale)
	}
	m.sample.add(duration)
	return response, err
}

func (c *Calls) method(fullName string) *method {
	if value, ok := c.methods.Load(fullName); ok {
		return value.(*method)
	}
	m := &method{name: "ratelimit_server." + path.Base(fullName)}
	m.timer, m.scale = c.mapping.observer(m.name + ".response_time")
	if c.keepSamples {
		m.sample = &sample{}
	}
	value, _ := c.methods.LoadOrStore(fullName, m)
	return value.(*method)
}

func (c *Calls) forEach(fn func(*method)) {
	c.methods.Range(func(_, value any) bool {
		fn(value.(*method))
		return true
	})
}

// Counters returns a function that reads the counters of the service and the numbers of calls.
func Counters(service *envoy.Service, calls *Calls) func() []envoy.Counter {
	return func() []envoy.Counter { return append(service.Counters(), calls.counters()...) }
}

func (c *Calls) counters() (counters []envoy.Counter) {
	c.forEach(func(m *method) {
		counters = append(counters, envoy.Counter{Name: m.name + ".total_requests", Value: m.calls.Load()})
	})
	return counters
}

func (c *Calls) collect(ch chan<- prometheus.Metric) {
	c.forEach(func(m *method) {
		if m.timer != nil {
			ch <- m.timer
		}
	})
}
