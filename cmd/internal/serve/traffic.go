package serve

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-go/weir/cmd/internal/admin"
)

// traffic counts requests and answers, for the log and for the administrator. It outlives all generations. A request
// counts once, even if it matches several rules.
type traffic struct {
	answers  [answerers][maxStatus + 1]atomic.Uint64 // by status; 0: a connection that was cut off without an answer
	inFlight atomic.Int64
	// The field requests includes decisions for other proxies. The field allowed counts requests that no rule refused,
	// and undecided those that weir answered before any rule decided.
	requests, allowed, undecided atomic.Uint64

	seconds  [answerers]prometheus.Observer
	duration *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
}

const maxStatus = 599

// durations has the bounds of a histogram's buckets, in seconds. They begin at a millisecond, for local servers, and
// end at a minute, the default of response_timeout.
var durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func newTraffic() *traffic {
	t := &traffic{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_http_request_duration_seconds", Buckets: durations,
			Help: "Time from the header of a request to the end of its answer, by the part that answered.",
		}, []string{"by"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_reloads_total", Help: "Reloads of the rule file, by their result.",
		}, []string{"result"}),
	}
	for part := range answerers {
		t.seconds[part] = t.duration.WithLabelValues(part.String())
	}
	for _, result := range []string{"done", "failed"} {
		t.reloads.WithLabelValues(result)
	}
	return t
}

func (t *traffic) countAnswer(x *exchange) {
	status := x.status
	if status < 0 || status > maxStatus {
		status = maxStatus
	}
	t.answers[x.answeredBy][status].Add(1)
	if status == http.StatusSwitchingProtocols { // such a connection may last for any time
		return
	}
	t.seconds[x.answeredBy].Observe(time.Since(x.begin).Seconds())
}

func (s *Server) requestsForPage() admin.Requests {
	t := s.traffic
	r := admin.Requests{Failures: s.upstreams.Failures(), InFlight: t.inFlight.Load(), Times: timesOf(t.seconds[byUpstream])}
	for part := range answerers {
		for status := range t.answers[part] {
			r.Answered += t.answers[part][status].Load()
		}
	}
	for status := range t.answers[byLimits] {
		r.Refused += t.answers[byLimits][status].Load()
	}
	return r
}

func timesOf(observer prometheus.Observer) (times admin.Times) {
	var snapshot dto.Metric
	metric, ok := observer.(prometheus.Metric)
	if !ok || metric.Write(&snapshot) != nil {
		return times
	}
	for _, b := range snapshot.GetHistogram().GetBucket() {
		times.Bounds = append(times.Bounds, b.GetUpperBound())
		times.Counts = append(times.Counts, b.GetCumulativeCount())
	}
	times.Counts = append(times.Counts, snapshot.GetHistogram().GetSampleCount())
	return times
}

// summary returns the numbers for the last log line.
func (s *Server) summary() []slog.Attr {
	t := s.traffic
	// Both are read first, because a request is counted in requests before it is counted in one of them.
	allowed, undecided := t.allowed.Load(), t.undecided.Load()
	requests := t.requests.Load()
	return []slog.Attr{
		slog.Uint64("requests", requests),
		slog.Uint64("allowed", allowed),
		slog.Uint64("refused", requests-allowed-undecided),
		slog.Uint64("upstream_failures", s.upstreams.Failures()),
	}
}

func (s *Server) collectors() []prometheus.Collector {
	gauge := func(name, help string, read func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(read()) })
	}
	t := s.traffic
	return append(s.upstreams.Collectors(),
		t.duration, t.reloads, &answerCollector{t}, &upstreamCollector{s}, &redisCollector{server: s}, &s.tokens, actionCollector{s.actions},
		gauge("weir_http_requests_in_flight", "Requests of clients that are not answered yet.", t.inFlight.Load),
		gauge("weir_connections", "Open connections of clients.", s.connections[clients].Open),
		gauge("weir_connections_max", "The bound on these connections; 0 for none.", s.connections[clients].Max),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "weir_connections_rejected_total",
			Help: "Connections of clients that were answered 503 because there were too many.",
		}, func() float64 { return float64(s.connections[clients].Rejected()) }),
	)
}

// An answerCollector reports one series of a metric for each status that has occurred.
type answerCollector struct{ traffic *traffic }

var answersDesc = prometheus.NewDesc("weir_http_requests_total",
	"Requests of clients by the status of their answer and the part that answered. "+
		"A request counts once, however many rules it matches.",
	[]string{"code", "by"}, nil)

func (c *answerCollector) Describe(out chan<- *prometheus.Desc) { out <- answersDesc }

func (c *answerCollector) Collect(out chan<- prometheus.Metric) {
	for part := range answerers {
		for status := range c.traffic.answers[part] {
			n := c.traffic.answers[part][status].Load()
			if n == 0 {
				continue
			}
			code := strconv.Itoa(status)
			if status == 0 {
				code = "aborted"
			}
			out <- prometheus.MustNewConstMetric(answersDesc, prometheus.CounterValue, float64(n), code, part.String())
		}
	}
}
