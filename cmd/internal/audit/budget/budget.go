package budget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"
)

// Options are the settings of an audit of budgets.
type Options struct {
	URL     *url.URL       // of the gateway
	Address netip.AddrPort // the address for all connections
	TLS     *tls.Config    // for https; nil for the default
	// Listen is the address of the model that is configured in the gateway.
	Listen string
	Model  string // the name of the language model
	// Fields are header fields of each request. In a value, the text {n} is replaced by the number of a key. Each key
	// has its own budget.
	Fields    [][2]string
	UserAgent string
	// Tokens is the budget of each key, at least 4,000. No tokens of the budget may come back while the audit runs.
	Tokens int
	// Settle is how long the gateway may take to count the cost of an answer.
	Settle time.Duration
	// Progress is called with the progress of the audit, from 0 to 1. It may be nil.
	Progress func(phase string, done float64)
}

// A Result is the result of one check.
type Result struct {
	// Pitfall is the number of the pitfall in docs/budgets.md.
	Pitfall string `json:"pitfall"`
	Name    string `json:"name"`
	// Fault says what is wrong, and Skipped why the check was not made. Both are "" if the check found nothing wrong.
	Fault   string `json:"fault,omitempty"`
	Skipped string `json:"skipped,omitempty"`
	// Found says what was measured.
	Found string `json:"found,omitempty"`
}

// A Report is the result of an audit.
type Report struct {
	Source   string   `json:"of"`
	Requests int      `json:"requests"`
	Seconds  float64  `json:"seconds"`
	Results  []Result `json:"results"`
	Faults   int      `json:"faults"`
}

type auditor struct {
	Options
	client         *http.Client
	model          *model
	keys           int
	payPlays       map[int]int // plays of chats: the number of the play, by its cost
	requests       atomic.Int64
	holdsEstimates bool // the gateway holds an estimate before it passes on a request
}

// Run audits a gateway. It returns [ErrNoBudget] if the budget cannot be measured.
func Run(ctx context.Context, o Options) (*Report, error) { return run(ctx, o, checks()) }

func run(ctx context.Context, o Options, checks []check) (r *Report, err error) {
	m, err := startModel(ctx, o.Listen)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	dialer := net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, o.Address.String())
		},
		TLSClientConfig: o.TLS, DisableCompression: true, MaxIdleConnsPerHost: parallelRequests,
	}
	defer transport.CloseIdleConnections()
	a := &auditor{Options: o, model: m, payPlays: map[int]int{}, client: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	begin := time.Now()
	r = &Report{Source: o.URL.String()}
	for i, c := range checks {
		if o.Progress != nil {
			o.Progress(c.name, float64(i)/float64(len(checks)))
		}
		result := Result{Pitfall: c.pitfall, Name: c.name}
		var wrong fault
		var skipped skip
		found, err := c.run(ctx, a)
		switch result.Found = found; {
		case err == nil:
		case errors.As(err, &wrong):
			result.Fault = string(wrong)
			r.Faults++
		case errors.As(err, &skipped):
			result.Skipped = string(skipped)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrNoBudget):
			return nil, err
		default:
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		r.Results = append(r.Results, result)
	}
	r.Requests, r.Seconds = int(a.requests.Load()), time.Since(begin).Seconds()
	return r, nil
}
