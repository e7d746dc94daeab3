package overshoot

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// A Result is the result of one scenario, for one of the [Ways] of sharing the limit.
type Result struct {
	Scenario Scenario      `json:"scenario"`
	Way      string        `json:"way"`
	Offered  int64         `json:"offered"`
	Admitted int64         `json:"admitted"`
	Errors   int64         `json:"errors"`          // decisions with an error, including refusals
	Error    string        `json:"error,omitempty"` // one of the errors
	Lost     int64         `json:"lost"`            // decisions or settlements that the store failed to make
	Time     time.Duration `json:"time"`            // from the start to the last decision of any node
	OfRate   float64       `json:"of_rate"`         // Admitted in % of rate*Time
	Exact    int64         `json:"exact"`           // how many tokens one exact limiter admits for the same requests
	OfExact  float64       `json:"of_exact"`        // Admitted in % of Exact
	Refused  float64       `json:"refused"`         // refused tokens in % of Offered
	Falsely  float64       `json:"falsely_refused"` // Exact - Admitted, in % of Offered
	// Bound is burst + rate*Time + N*D, and 0 for a way that promises no bound. D is 0 in strict mode. No tokens are in
	// hand at the start.
	Bound  uint64        `json:"bound"`
	Calls  float64       `json:"calls"`     // script calls per second
	Median int64         `json:"median_ns"` // ns per decision: the median of the nodes' medians
	Late   time.Duration `json:"late"`      // the most that any request was behind its planned time
}

// Holds reports whether the admitted tokens are within the bound, or there is none.
func (r Result) Holds() bool { return r.Bound == 0 || uint64(r.Admitted) <= r.Bound }

type node struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// Run runs a scenario for one way of sharing the limit. It starts command, a program that must call [Node], once for
// each node.
func Run(ctx context.Context, s *Server, scenario Scenario, way string, command ...string) (r Result, err error) {
	ctx, stop := context.WithTimeout(ctx, 2*scenario.Time+30*time.Second)
	defer stop()
	nodes := make([]node, 0, len(scenario.Shares))
	defer func() {
		if err != nil {
			stop() // kills the processes
		}
		for _, n := range nodes {
			_ = n.in.Close()
			if waitErr := n.process.Wait(); waitErr != nil && err == nil {
				err = fmt.Errorf("overshoot: a node: %w", waitErr)
			}
		}
	}()
	key := fmt.Sprintf("overshoot-%d", time.Now().UnixNano())
	var links []*link
	defer func() {
		for _, l := range links {
			l.close()
		}
	}()
	for i := range scenario.Shares {
		address := s.Address
		if scenario.isDisturbed() {
			l, err := newLink(s.Address)
			if err != nil {
				return r, err
			}
			links, address = append(links, l), l.listener.Addr().String()
		}
		n, err := startNode(ctx, Task{Scenario: scenario, Way: way, Store: address, Key: key, Node: i}, command)
		if err != nil {
			return r, err
		}
		nodes = append(nodes, n)
	}
	for i, n := range nodes {
		if line, err := n.out.ReadString('\n'); err != nil {
			return r, fmt.Errorf("overshoot: node %d is not ready: %w", i, err)
		} else if line != "ready\n" {
			return r, fmt.Errorf("overshoot: node %d says %q, not that it is ready", i, line)
		}
	}
	before, err := s.scriptCalls(ctx)
	if err != nil {
		return r, err
	}
	// The run starts on a whole second. So it has as many one-second windows as seconds.
	start := time.Now().Add(1200 * time.Millisecond).Truncate(time.Second)
	for _, n := range nodes {
		if _, err := fmt.Fprintln(n.in, start.UnixNano()); err != nil {
			return r, err
		}
	}
	disturbCtx, stopDisturbing := context.WithCancel(ctx)
	defer stopDisturbing()
	if links != nil {
		go scenario.disturb(disturbCtx, start, links)
	}
	results := make([]NodeResult, len(nodes))
	for i, n := range nodes {
		if err := json.NewDecoder(n.out).Decode(&results[i]); err != nil {
			return r, fmt.Errorf("overshoot: node %d has no result: %w", i, err)
		}
	}
	after, err := s.scriptCalls(ctx)
	if err != nil {
		return r, err
	}
	r = summary(scenario, way, results)
	r.Calls = float64(after-before) / r.Time.Seconds()
	return r, nil
}

func startNode(ctx context.Context, t Task, command []string) (node, error) {
	n := node{process: exec.CommandContext(ctx, command[0], command[1:]...)}
	n.process.Stderr = os.Stderr
	out, err := n.process.StdoutPipe()
	if err != nil {
		return n, err
	}
	n.out = bufio.NewReader(out)
	if n.in, err = n.process.StdinPipe(); err != nil {
		return n, err
	}
	if err := n.process.Start(); err != nil {
		return n, fmt.Errorf("overshoot: node %d: %w", t.Node, err)
	}
	return n, json.NewEncoder(n.in).Encode(t)
}
