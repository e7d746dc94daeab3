//go:build explore

package lease

import (
	"errors"
	"fmt"

	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/internal/word"
)

type claimCall uint8

const (
	settle claimCall = iota // settles the claim, and asks the store if send is true
	renewal
)

type claimScenario struct {
	name    string
	threads [][]claimCall
}

var claimScenarios = []claimScenario{
	{"two settle a claim", [][]claimCall{{settle}, {settle}}},
	{"three settle a claim", [][]claimCall{{settle}, {settle, settle}, {settle}}},
	{"a claim is settled beside a renewal", [][]claimCall{{settle}, {renewal}}},
	{"a claim is settled twice beside renewals", [][]claimCall{{settle}, {settle}, {renewal, renewal}}},
	{"two renew a claim", [][]claimCall{{renewal, renewal}, {renewal}}},
	{"two renew a claim that is settled", [][]claimCall{{renewal, renewal}, {renewal}, {settle}}},
}

// A claimWorld contains a claim and the questions on their way to the store. A question or its answer may be lost.
type claimWorld struct {
	claim   Claim
	threads []*claimThread
	claimed
	trace func(string)
}

type claimed struct {
	firsts, renewing int // calls that settled, and renewals in progress
	sent             int // settlements
	over             bool
}

type claimThread struct {
	*interleave.Thread
	program []claimCall
	made    int
	does    claimCall // what it asks the store
	failure error
}

func newClaimWorld(s claimScenario) *claimWorld {
	w := &claimWorld{}
	interleave.Intercept(nil)
	for _, program := range s.threads {
		th := &claimThread{program: program}
		th.Thread = interleave.NewThread(func() {
			for _, c := range th.program {
				w.call(th, c)
				th.made++
			}
		})
		w.threads = append(w.threads, th)
	}
	return w
}

func (w *claimWorld) call(th *claimThread, c claimCall) {
	if c == settle {
		first, send := w.claim.Settle()
		if first {
			w.firsts++
		}
		if send {
			w.ask(th, settle)
		}
		return
	}
	if !w.claim.Renew() {
		return
	}
	w.renewing++
	w.ask(th, renewal)
	w.renewing--
	if w.claim.Renewed() {
		w.ask(th, settle)
	}
}

func (w *claimWorld) ask(th *claimThread, c claimCall) {
	if c == settle {
		w.sent++
	}
	switch {
	case w.firsts > 1 || w.sent > 1:
		th.failure = fmt.Errorf("L6: %d calls have settled, and %d settlements are sent", w.firsts, w.sent)
	case c == settle && w.firsts == 0:
		th.failure = errors.New("L6: a claim is settled that nobody settled")
	case c == settle && w.renewing > 0:
		th.failure = errors.New("L7: a settlement is sent while a renewal is under way")
	case c == renewal && (w.sent > 0 || w.renewing > 1):
		th.failure = errors.New("L7: a renewal is sent beside another question")
	}
	th.does = c
	th.Pause(word.Access{})
}

func (w *claimWorld) Restart() {
	w.claim, w.claimed = Claim{}, claimed{}
	for _, th := range w.threads {
		th.Rewind()
		*th = claimThread{Thread: th.Thread, program: th.program}
	}
	for _, th := range w.threads {
		th.Resume()
	}
}

func (th *claimThread) finished() bool { return th.made == len(th.program) }

func (w *claimWorld) Unfinished() (threads uint64) {
	for i, th := range w.threads {
		threads |= (1 - interleave.Bit(th.finished())) << i
	}
	return threads
}

func (w *claimWorld) Outcomes(thread int) int {
	if w.threads[thread].Pending.Word == nil {
		return ways
	}
	return 1
}

func (w *claimWorld) Step(thread, way int) error {
	th := w.threads[thread]
	if th.Pending.Word == nil && way != questionLost {
		switch {
		case th.does == settle:
			w.over = true
		case w.over:
			return errors.New("L7: a renewal arrives after the settlement")
		}
	}
	th.History = interleave.Mix(th.History, uint64(way))
	from, to := th.Step()
	if w.trace != nil {
		w.trace(fmt.Sprintf("t%d  %d -> %d", thread, from, to))
	}
	return th.failure
}

func (w *claimWorld) Hash() (h uint64) {
	mix := interleave.Mix
	h = mix(mix(mix(w.claim.word.Peek(), uint64(w.firsts)), uint64(w.renewing)), uint64(w.sent)<<1|interleave.Bit(w.over))
	for _, th := range w.threads {
		h = mix(mix(mix(h, th.History), uint64(th.made)), uint64(th.does)<<1|interleave.Bit(th.Pending.Word == nil))
	}
	return h
}

func (w *claimWorld) CheckEnd() error {
	if w.firsts > 1 || w.sent != w.firsts {
		return fmt.Errorf("L6: %d calls have settled, and %d settlements were sent", w.firsts, w.sent)
	}
	settles := false
	for _, th := range w.threads {
		for _, c := range th.program {
			settles = settles || c == settle
		}
	}
	if settles && w.firsts == 0 {
		return errors.New("L6: no call has settled")
	}
	if w.renewing > 0 {
		return errors.New("L7: a renewal does not end")
	}
	return nil
}

func (w *claimWorld) Trace(tell func(string)) { w.trace = tell }
