package overshoot

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// A Task is the task of one node, which reads it as a line of JSON from its standard input.
type Task struct {
	Scenario Scenario `json:"scenario"`
	Way      string   `json:"way"` // one of the texts that Ways returns
	Store    string   `json:"store"`
	Key      string   `json:"key"`
	Node     int      `json:"node"` // number of the node, from 0
}

// A NodeResult contains the results of one node.
type NodeResult struct {
	Offered  int64         `json:"offered"`  // in tokens
	Admitted int64         `json:"admitted"` // in tokens
	Errors   int64         `json:"errors"`
	Error    string        `json:"error,omitempty"` // one of the errors
	End      int64         `json:"end"`             // when the last decision ended, in ns since the common start
	Late     time.Duration `json:"late"`            // the most that a request was behind its planned time
	Median   int64         `json:"median"`          // ns per decision, including two readings of the clock
	Begins   []int64       `json:"begins"`          // when each decision was asked for, ns since the common start
	Lost     int64         `json:"lost"`            // decisions that the store failed to make
}

// Overdraft is the overdraft, per node, of the leases that are measured.
const Overdraft = 8

type decider struct {
	allow func(n uint64) (bool, error)
	close func(*NodeResult)
}

func newDecider(ctx context.Context, t Task) (*decider, error) {
	policy := engine.TokenBucket(engine.PerSecond(t.Scenario.Rate), t.Scenario.Burst)
	if kind, interval, ok := strings.Cut(t.Way, " "); ok {
		return newHybrid(t, kind, interval)
	}
	mode, ok := map[string]redislimit.Mode{"strict": redislimit.Strict, "lease": redislimit.Leased}[t.Way]
	if !ok {
		return nil, fmt.Errorf("overshoot: way %q: want one of %q", t.Way, Ways())
	}
	// With this timeout, the store does not count as lost just because the machine is busy.
	timeout := time.Second
	if t.Scenario.isDisturbed() {
		timeout = 50 * time.Millisecond
	}
	store, err := redislimit.Open(ctx, "redis://"+t.Store, redislimit.Timeout(timeout))
	if err != nil {
		return nil, err
	}
	l, err := redislimit.New(store, t.Key, policy, t.options(mode)...)
	if err != nil {
		return nil, err
	}
	return &decider{
		allow: func(n uint64) (bool, error) {
			d, err := l.Take(context.Background(), t.Key, n)
			return d.Allowed, err
		},
		close: func(r *NodeResult) {
			r.Lost = l.Stats().Fallbacks
			_ = l.Close()     // always nil
			_ = store.Close() // always nil
		},
	}, nil
}

func (t Task) options(mode redislimit.Mode) []redislimit.Option {
	nodes, overdraft := len(t.Scenario.Shares), uint64(Overdraft)
	if t.Scenario.Differ {
		nodes, overdraft = nodes+t.Node, uint64(t.Node)
		if t.Node%2 == 1 {
			mode = redislimit.Strict
		}
	}
	failure := redislimit.FailClosed
	if t.Scenario.isDisturbed() {
		failure = redislimit.FailShare
	}
	return []redislimit.Option{
		redislimit.InMode(mode), redislimit.Nodes(nodes), redislimit.Overdraft(overdraft), redislimit.OnLoss(failure),
	}
}

func newHybrid(t Task, kind, intervalText string) (*decider, error) {
	interval, err := time.ParseDuration(intervalText)
	if err != nil || interval <= 0 || kind != "settle" && kind != "window" {
		return nil, fmt.Errorf("overshoot: way %q: want one of %q", t.Way, Ways())
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{t.Store}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	var allow func(n uint64) bool
	var settle func(context.Context) error
	if kind == "settle" {
		s := &settler{
			client: client, script: rueidis.NewLuaScript(settleText), key: t.Key,
			rate: t.Scenario.Rate, burst: float64(t.Scenario.Burst), asOf: time.Now(),
		}
		allow, settle = s.allow, s.settle
	} else {
		w := &windower{client: client, script: rueidis.NewLuaScript(windowText), key: t.Key, limit: int64(t.Scenario.Rate)}
		allow, settle = w.allow, w.settle
	}
	e := settleEvery(interval, interval*time.Duration(t.Node)/time.Duration(len(t.Scenario.Shares)), settle)
	return &decider{
		allow: func(n uint64) (bool, error) { return allow(n), nil },
		close: func(r *NodeResult) { r.Lost = int64(e.close()); client.Close() },
	}, nil
}

// Node runs a node process: it reads a [Task], writes "ready", reads the start time (Unix nanoseconds), offers its
// share of the load and writes a [NodeResult].
func Node(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("overshoot: node: no task: %w", err)
	}
	var t Task
	if err := json.Unmarshal(line, &t); err != nil {
		return fmt.Errorf("overshoot: node: the task: %w", err)
	}
	if t.Node < 0 || t.Node >= len(t.Scenario.Shares) {
		return fmt.Errorf("overshoot: node %d of %d", t.Node, len(t.Scenario.Shares))
	}
	d, err := newDecider(ctx, t)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	var start int64
	if _, err := fmt.Fscan(lines, &start); err != nil {
		return fmt.Errorf("overshoot: node: no start: %w", err)
	}
	r := offer(t, d, time.Now().Add(time.Until(time.Unix(0, start))))
	d.close(&r)
	return json.NewEncoder(out).Encode(r)
}

// offer sends every request at its planned time, even if earlier requests have not been answered.
func offer(t Task, d *decider, start time.Time) NodeResult {
	perSecond := t.Scenario.Offered * t.Scenario.Shares[t.Node] / t.Scenario.meanCost()
	n := int(perSecond * t.Scenario.Time.Seconds())
	gap := float64(time.Second) / perSecond
	phase := (float64(t.Node) + 0.5) / float64(len(t.Scenario.Shares))
	type outcome struct {
		allowed       bool
		err           error
		duration, end int64
	}
	outcomes := make([]outcome, n)
	var r NodeResult
	var requests sync.WaitGroup
	for i := range n {
		due := start.Add(time.Duration((float64(i) + phase) * gap))
		for wait := time.Until(due); wait > 0; wait = time.Until(due) {
			time.Sleep(wait)
		}
		r.Late = max(r.Late, time.Since(due))
		requests.Go(func() {
			begin := time.Since(start)
			allowed, err := d.allow(t.Scenario.cost(i))
			end := time.Since(start)
			outcomes[i] = outcome{allowed, err, int64(end - begin), int64(end)}
		})
	}
	requests.Wait()
	durations := make([]int64, n)
	for i, o := range outcomes {
		durations[i] = o.duration
		cost := int64(t.Scenario.cost(i))
		r.Offered += cost
		r.Begins = append(r.Begins, o.end-o.duration)
		r.End = max(r.End, o.end)
		if o.allowed {
			r.Admitted += cost
		}
		if o.err != nil {
			r.Errors++
			r.Error = o.err.Error()
		}
	}
	if n > 0 {
		slices.Sort(durations)
		r.Median = durations[n/2]
	}
	return r
}
