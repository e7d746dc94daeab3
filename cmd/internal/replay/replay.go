package replay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/engine"
)

// NewLimiter makes the limiter of a policy, for room keys. The command line may set a smaller number of keys.
type NewLimiter func(policy engine.Policy, room int, options ...engine.Option) (*engine.Limiter, error)

// Run takes one token of the policy for every request of the log, and reports the decisions. The limiter is made before
// the log is read.
//
// An unusable line is skipped and counted. Run returns an error if the input breaks off, because figures for a part
// would mislead. It also returns an error for a log without requests. Otherwise the report on a wrong file would say
// that the limit refuses nothing.
func Run(policy engine.Policy, newLimiter NewLimiter, log *accesslog.Log) (*Report, error) {
	return repeat(log, func(a attempt) (*Report, error) {
		r, err := newRun(byAddress(), a, 0)
		if err != nil {
			return nil, err
		}
		defer r.close()
		if err := r.add(policy, newLimiter); err != nil {
			return nil, err
		}
		if err := r.read(log, r.take, r.takeAsLogged); err != nil {
			return nil, err
		}
		return &Report{Log: r.log, Outcome: r.outcome(0)}, nil
	})
}

// A run decides the requests of a log with one or several limiters.
type run struct {
	attempt
	log       Log
	clock     clock             // for the sorted requests
	logClock  clock             // for the limiters in the order of the log
	limiters  []*engine.Limiter // all of them
	trials    []*trial
	logTrials []*trial // like trials, for requests in the order of the log; empty if asLogged is false
	clients   *clients
	counts    clientCounts
	window    time.Duration // the window in which admitted requests of each key are counted; 0 if they are not counted
}

// A trial is a limiter that decides every request, with the results.
type trial struct {
	limiter *engine.Limiter
	outcome Outcome
}

// newRun returns a run that distinguishes clients as the rule file says.
func newRun(f *rulefile.File, a attempt, window time.Duration) (*run, error) {
	ip, err := rules.PeerIP(f)
	if err != nil {
		return nil, err
	}
	return &run{attempt: a, clients: newClients(ip), counts: clientCounts{}, window: window}, nil
}

func byAddress() *rulefile.File { return rulefile.Single(rulefile.NewRule("")) }

func (r *run) add(policy engine.Policy, newLimiter NewLimiter) error {
	limiter, err := newLimiter(policy, r.room, engine.ClockFunc(r.clock.now))
	if err != nil {
		return err
	}
	r.limiters = append(r.limiters, limiter)
	r.trials = append(r.trials, &trial{limiter, Outcome{Policy: policy}})
	if !r.asLogged {
		return nil
	}
	if limiter, err = newLimiter(policy, r.room, engine.ClockFunc(r.logClock.now)); err != nil {
		return err
	}
	r.limiters = append(r.limiters, limiter)
	r.logTrials = append(r.logTrials, &trial{limiter, Outcome{Policy: policy}})
	return nil
}

func (r *run) close() {
	for _, l := range r.limiters {
		_ = l.Close() // Close always returns nil
	}
}

type action func(e *accesslog.Entry, now time.Time) error

// read calls the function decide with every request of the log, in the order of time. If r.asLogged is set, read also
// calls the function decideAsLogged with every request, in the order of the log. For a late request, this function gets
// the latest time in the lines before it.
func (r *run) read(log *accesslog.Log, decide, decideAsLogged action) error {
	var logErr error
	log.OnEntry(nil)
	if r.asLogged {
		log.OnEntry(func(e *accesslog.Entry) {
			if logErr == nil {
				logErr = decideAsLogged(e, r.logClock.advance(e.Time))
			}
		})
	}
	for {
		entry, err := log.Next()
		if err != nil {
			if lineErr := (*accesslog.LineError)(nil); errors.As(err, &lineErr) {
				r.log.skip(lineErr)
				continue
			}
			if errors.Is(err, io.EOF) {
				break
			}
			return err
		}
		if err := errors.Join(logErr, decide(entry, r.clock.advance(entry.Time))); err != nil {
			return err
		}
		r.log.stamp(entry)
		r.counts.count(entry.Client)
		if r.log.Requests%checkInterval == 0 && r.isCramped() {
			return errCramped
		}
	}
	r.log.Format = log.Format()
	if r.isCramped() {
		return errCramped
	}
	if r.log.Requests == 0 {
		return r.log.noRequest()
	}
	r.log.Keys = uint64(len(r.clients.byName))
	r.log.ProxyNote = r.counts.note(r.log.Requests)
	return nil
}

// take takes one token from every limiter, in the order of time.
func (r *run) take(e *accesslog.Entry, now time.Time) error {
	client := r.client(e)
	client.requests++
	for i, t := range r.trials {
		c := &client.charges[i]
		if !t.limiter.TakeAt(c.key, 1, now).Allowed {
			t.outcome.Refused++
			c.refused++
			continue
		}
		t.outcome.Allowed++
		if r.window > 0 {
			c.admitted.add(now, r.window)
		}
	}
	return nil
}

// takeAsLogged takes one token from every limiter, in the order of the log.
func (r *run) takeAsLogged(e *accesslog.Entry, now time.Time) error {
	client := r.client(e)
	for i, t := range r.logTrials {
		if !t.limiter.TakeAt(client.charges[len(r.trials)+i].key, 1, now).Allowed {
			t.outcome.Refused++
		}
	}
	return nil
}

// client returns the client of an entry. A second call for an entry does not determine the client again.
func (r *run) client(e *accesslog.Entry) *client {
	if c, ok := e.Memo.(*client); ok {
		return c
	}
	c := r.clients.find(e.Client, r.trials, r.logTrials)
	if r.asLogged {
		e.Memo = c
	}
	return c
}

func (l *Log) noRequest() error {
	if l.Skipped == 0 {
		return errors.New("the log is empty: there is nothing to replay")
	}
	return fmt.Errorf("none of its lines is in the format %s (%s); is it an access log?", l.Format, l.Reasons[0])
}
