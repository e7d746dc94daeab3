package limitertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/limitertest/check"
)

// A step of a program is one request, with its time since the start of the program.
type step struct {
	at  time.Duration
	key string
	n   int64
}

// A fault is a set of the kinds of wrong verdicts that a program looks for.
type fault uint8

const (
	early fault = 1 << iota // admitted beyond the limit
	late                    // refused although there was room
)

// A program sends requests to a limiter in a bubble, step by step. A model of the limiter's promise follows the
// requests.
type program struct {
	*suite
	t      *testing.T
	limit  Limit
	faults fault // the faults that end the program

	limiter Limiter
	model   *check.Checker
	begin   time.Duration
	steps   []step
	log     []Event
	fault   fault // the first fault that was found
	verdict check.Verdict
}

// program makes a program and calls the function f with it in a bubble. If a verdict has one of the given faults, the
// test fails and prints a shortest program with this fault.
func (s *suite) program(t *testing.T, l Limit, faults fault, f func(*program)) {
	t.Helper()
	p := &program{suite: s, limit: l, faults: faults}
	s.bubble(t, func(t *testing.T) {
		p.start(t)
		f(p)
	})
	if p.fault != 0 && !t.Failed() {
		t.Error(s.shortestFailure(t, p))
	}
}

func (p *program) start(t *testing.T) {
	p.t, p.limiter, p.model, p.begin = t, p.open(t, p.limit), p.checker(p.limit), p.now()
}

// take sends a request to the limiter. ok is false if a fault was found, so that the program must end.
func (p *program) take(key string, n int64) (admitted, ok bool) {
	p.t.Helper()
	if p.fault != 0 {
		return false, false
	}
	at := p.now()
	d := p.suite.take(p.t, p.limiter, key, n)
	p.steps = append(p.steps, step{at - p.begin, key, n})
	e := Event{At: at, Key: key, N: n, Allowed: d.Allowed, Wait: d.Wait}
	p.log = append(p.log, e)
	v := p.model.Add(e)
	switch {
	case v.Early > p.model.EarlyBy && p.faults&early != 0:
		p.fault, p.verdict = early, v
	case v.Late > p.model.LateBy && p.faults&late != 0:
		p.fault, p.verdict = late, v
	}
	return d.Allowed, p.fault == 0
}

// drain takes tokens until a request of the key for one token is refused. ok is false if the program must end.
func (p *program) drain(key string) (ok bool) {
	p.t.Helper()
	n := p.maxCost(p.limit)
	if p.limit.Capacity(p.Promise) <= 100 {
		n = 1
	}
	for ; n >= 1; n /= 2 {
		for admitted := true; admitted; {
			if admitted, ok = p.take(key, n); !ok {
				return false
			}
		}
	}
	return true
}

// timeLeft returns how much fake time the program may still take.
func (p *program) timeLeft() time.Duration { return max(p.span(p.limit)-(p.now()-p.begin), 0) }

// sleep lets a fake time d pass, unless the program has less time left. It reports whether d passed.
func (p *program) sleep(d time.Duration) bool {
	if d < 0 || d > p.timeLeft() {
		return false
	}
	p.pass(d)
	return true
}

// rerun returns a new program that has run these steps. Its field fault is set only if the new program ended with the
// same fault as p.
func (p *program) rerun(t *testing.T, steps []step) *program {
	q := &program{suite: p.suite, limit: p.limit, faults: p.fault}
	p.bubble(t, func(t *testing.T) {
		q.start(t)
		for _, s := range steps {
			q.pass(s.at - (q.now() - q.begin))
			if _, ok := q.take(s.key, s.n); !ok {
				return
			}
		}
	})
	return q
}

// shortestFailure returns the text of a failure. If the failure repeats, the text has a shortest program that fails.
func (s *suite) shortestFailure(t *testing.T, p *program) string {
	t.Helper()
	const tries = 2000
	begin, printed := time.Now(), p
	fails := func(steps []step) bool {
		if time.Since(begin) > 3*time.Second {
			return false
		}
		q := p.rerun(t, steps)
		if q.fault == p.fault {
			printed = q
		}
		return q.fault == p.fault
	}
	if !fails(p.steps) {
		return p.text() + "\n(The same requests did not fail again: it depends on chance.)"
	}
	shrunk := check.Shrink(p.steps, tries, fails)
	for i := range slices.Backward(shrunk) { // start without a pause, if the program then still fails
		shrunk[i].at -= shrunk[0].at
	}
	begin = time.Now()
	fails(shrunk)
	return printed.text()
}

// text returns the program as Go code, with the answers and the faults. Of a long program, only the end is returned.
func (p *program) text() string {
	var text strings.Builder
	problem := fmt.Sprintf("%d tokens too many, %v too early", p.verdict.Excess, p.verdict.Early)
	if p.verdict.Early == check.Never {
		problem = fmt.Sprintf("%d tokens too many: the limit never admits so many at once", p.verdict.Excess)
	}
	if p.fault == late {
		problem = fmt.Sprintf("refused although there has been room for %v", p.verdict.Late)
		if p.verdict.Late > maxSpan {
			problem = "refused although there always was room"
		}
	}
	fmt.Fprintf(&text, "%v of %v: %s\n", p.Promise, p.limit, problem)
	lines, last := []string{}, p.begin
	for _, e := range p.log {
		if e.At > last {
			lines = append(lines, fmt.Sprintf("time.Sleep(%d) // %v", e.At-last, e.At-last))
		}
		outcome := "refused"
		if e.Allowed {
			outcome = "admitted"
		}
		if last = e.At; e.Wait != 0 {
			outcome += fmt.Sprintf(", held for %v", e.Wait)
		}
		lines = append(lines, fmt.Sprintf("l.Take(%s, %d) // %s", quote(e.Key), e.N, outcome))
	}
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && lines[end] == lines[i] {
			end++
		}
		if end-i > 1 {
			fmt.Fprintf(&text, "\t%s, %d times\n", lines[i], end-i)
		} else {
			fmt.Fprintf(&text, "\t%s\n", lines[i])
		}
		if i = end; i >= 10 && len(lines)-i > 30 {
			fmt.Fprintf(&text, "\t... and so on, %d lines\n", len(lines)-i-20)
			i = len(lines) - 20
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// quote returns a key for display. Of a long key, it shows only the beginning and the end.
func quote(key string) string {
	if len(key) <= 60 {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("%q /* %d bytes */ %q", key[:20], len(key), key[len(key)-20:])
}
