//go:build explore

package spread

import (
	"fmt"

	"github.com/weir-go/weir/internal/interleave"
)

// rules has the state of an exact bucket that has admitted the same requests.
type rules struct {
	full int64     // when it is full, in nanoseconds
	most uint64    // the most that cells may hold in all
	used [4]uint64 // tokens that were taken at each cell
}

// begin sets the exact bucket to full, like the explored bucket before all calls.
func (w *world) begin() {
	w.rules = rules{full: start, most: w.terms[0].Share() * uint64(w.bucket.Cells())}
}

func (r *rules) hash() uint64 {
	h := interleave.Mix(uint64(r.full), r.most)
	for _, used := range r.used {
		h = interleave.Mix(h, used)
	}
	return h
}

// progress records what the checks know about the call of a thread.
type progress struct {
	clock int64 // the time that it has read last
	paid  int   // how often it was charged
	right bool  // a refusal would have been right at some moment
	wrong bool  // an admission would have been right at some moment
	said  *bool // what it has returned
}

// look records what an exact bucket would answer to the call now, once the call has read its clock.
func (p *progress) look(full, cost, limit int64) {
	if p.clock > 0 {
		short := max(full-p.clock, 0)+cost > limit
		p.right, p.wrong = p.right || short, p.wrong || !short
	}
}

// A measure has the numbers that the bucket's words contain.
type measure struct {
	owed int64  // by the bucket, in ticks of the current terms
	held uint64 // tokens in cells
	cost uint64 // ticks of a token
	plan uint64
	full uint64
}

func (w *world) measure() (m measure) {
	s := state(w.bucket.shared.Peek())
	t := w.bucket.terms[s.plan()].At(w.bucket.terms[s.plan()].Peek())
	m.cost, m.plan, m.full = t.Quota.Token, s.plan(), uint64(s)&timeMask
	if w.now-int64(w.bucket.changedAt.Peek()) <= t.quarter || !w.scenario.rests {
		m.owed = int64(s.debt(t.Bucket.Ticks(w.now)))
	}
	for i := range w.bucket.cells {
		c := cell(w.bucket.cells[i].word.Peek())
		made := s.cell() == i+1 && s.parity() == c.parity()
		if c.kind() == ready || made == (c.kind() == drawing) {
			m.held += c.tokens()
		}
	}
	return m
}

// check checks one step of a thread. The flag ended says whether the thread's call has ended in this step.
func (w *world) check(th *thread, c call, p *progress, before measure, ended bool) error {
	after := w.measure()
	terms := w.bucket.terms[after.plan].At(w.bucket.terms[after.plan].Peek())
	if most := terms.Share() * terms.cells; most > w.most {
		w.most = most
	}
	if after.held > w.most {
		return fmt.Errorf("U1: cells hold %d tokens, and may hold %d", after.held, w.most)
	}
	if after.plan != before.plan { // the debt stays the same number of tokens
		debt := max(w.full-w.now, 0)
		w.full = w.now + debt*int64(after.cost)/int64(before.cost)
		before.owed = before.owed * int64(after.cost) / int64(before.cost)
	}
	if err := w.account(th, c, p, before, after); err != nil {
		return err
	}
	if c := w.drawn(before); c > 0 && cell(w.bucket.cells[c-1].word.Peek()).tokens() > w.used[c-1] {
		return fmt.Errorf("U4: cell %d draws %v, and %d tokens were taken there", c, cell(w.bucket.cells[c-1].word.Peek()), w.used[c-1])
	}
	limit := int64(terms.Quota.Tokens * terms.Quota.Token)
	if slack := int64(w.most * terms.Quota.Token); c.verb == take && w.full-w.now > limit+slack {
		return fmt.Errorf("U1: an exact bucket of %d and %d would owe %d", limit, slack, w.full-w.now)
	}
	p.look(w.full, int64(c.n*after.cost), limit)
	for _, other := range w.threads {
		if other != th && other.made < len(other.program) {
			other.look(w.full, int64(other.program[other.made].n*after.cost), limit)
		}
	}
	if !ended {
		return nil
	}
	return w.end(th, c, p, after)
}

// drawn returns the number of the cell whose draw this step has made, or 0.
func (w *world) drawn(before measure) int {
	s := state(w.bucket.shared.Peek())
	if who := s.cell(); who > 0 && uint64(s)&timeMask != before.full && cell(w.bucket.cells[who-1].word.Peek()).kind() == drawing {
		return who
	}
	return 0
}

// account determines what a step has charged, and charges the exact bucket for it. As long as no time passes, the
// bucket's debt minus the tokens in cells equals the admitted tokens.
func (w *world) account(th *thread, c call, p *progress, before, after measure) error {
	cost := int64(after.cost)
	spent := int64(before.held) - int64(after.held)
	moved := after.owed - before.owed + spent*cost
	if w.timed && c.verb != refund {
		moved = 0
		switch s := state(w.bucket.shared.Peek()); {
		case c.verb != take:
		case before.full == after.full && spent > 0:
			moved = spent * cost
			p.clock = w.now
		case before.full != after.full && s.cell() == 0 && after.full != uint64(p.clock)&timeMask: // beyond a wake (S9)
			moved = int64(c.n) * cost
		}
	}
	if moved == 0 {
		return nil
	}
	lawful := false
	switch c.verb {
	case take, settle:
		n := int64(c.n)
		if c.verb == settle {
			n--
		}
		lawful = p.paid == 0 && moved == n*cost
	case refund:
		back := max(int64(c.n)*cost-(p.clock-start), 0)
		lawful = p.paid == 0 && moved < 0 && -moved <= back && after.plan == 0
	case reset:
		lawful = after.owed == 0
		w.full = w.now
		return nil
	}
	if !lawful && w.isReset && moved > 0 && before.owed == 0 { // the bucket was full when tokens were given back
		return nil
	}
	if !lawful {
		return fmt.Errorf("U2: %v has changed the bucket by %d, and was charged %d times", c, moved, p.paid)
	}
	p.paid++
	if c.verb == take {
		w.used[c.cell] += c.n
	}
	at := w.now
	if w.timed && c.verb == take {
		at = p.clock
	}
	w.full = max(w.full, at) + moved
	return nil
}

// end checks the result that a call has returned.
func (w *world) end(th *thread, c call, p *progress, after measure) error {
	switch {
	case c.verb == take && *p.said && p.paid != 1:
		return fmt.Errorf("U2: %v was admitted, and charged %d times", c, p.paid)
	case c.verb == take && !*p.said && p.paid != 0:
		return fmt.Errorf("U2: %v was refused, and charged", c)
	case (c.verb == take || c.verb == peek) && !*p.said && !p.right:
		return fmt.Errorf("U3: %v was refused, and would have been admitted at every moment of the call", c)
	case c.verb == peek && *p.said && !p.wrong && !w.timed:
		return fmt.Errorf("U3: %v was told of tokens that were there at no moment of the call", c)
	case c.verb == replace:
		terms := w.bucket.terms[after.plan].At(w.bucket.terms[after.plan].Peek())
		w.most = terms.Share() * terms.cells
		if after.held > w.most {
			return fmt.Errorf("U1: cells hold %d tokens after a change, and may hold %d", after.held, w.most)
		}
	}
	return nil
}

// CheckEnd checks the words after all calls have returned: the bucket's debt minus the tokens in cells must be at most
// the debt of the exact bucket.
func (w *world) CheckEnd() error {
	m := w.measure()
	if debt := max(w.full-w.now, 0); m.owed-int64(m.held*m.cost) > debt {
		return fmt.Errorf("U2: the bucket owes %d and cells hold %d tokens, when an exact bucket owes %d", m.owed, m.held, debt)
	}
	return nil
}
