//go:build explore

package lease

import (
	"fmt"

	"github.com/weir-go/weir/internal/interleave"
	"github.com/weir-go/weir/redislimit/internal/script"
)

func (w *world) begin(th *thread) {
	h := &w.leases[th.lease-1]
	th.History = interleave.Mix(interleave.Mix(th.History, interleave.Bit(h.touched)), h.lease.visitedWord)
	th.idle, h.touched = !h.touched, false
}

// changed checks a change that a thread has made to the word of a lease.
func (w *world) changed(th *thread, before thread, i int, from, to state) error {
	h := &w.leases[i]
	if from&retired != 0 {
		return fmt.Errorf("L5: %v changed a lease that was retired: %v to %v", th.named(before), from, to)
	}
	err := w.counted(th, before, from, to)
	if err == nil {
		err = w.flagged(th, before, h, from, to)
	}
	if to&retired == 0 {
		h.touched = true
	}
	return err
}

func (th *thread) named(before thread) string {
	return fmt.Sprintf("t%d, %v, when it was %s,", th.name, th.program[before.made], before.phase)
}

func (p phase) String() string {
	return [...]string{"elsewhere", "in Take", "in Renewal", "in Settlement", "in Apply", "in Fail", "in Expire", "in Refund", "asking the store"}[p]
}

// counted checks the tokens and the debt of a change, and records them (L1 to L3).
func (w *world) counted(th *thread, before thread, from, to state) error {
	n := th.program[before.made].n
	tokens, debt := int64(to.tokens())-int64(from.tokens()), int64(to.debt())-int64(from.debt())
	if before.phase == taking {
		return w.spent(th, before, from, tokens, debt)
	}
	var wantTokens, wantDebt int64
	rule := "L1"
	switch before.phase {
	case settling:
		rule, wantTokens = "L3", -int64(from.tokens())
		th.taken += from.tokens()
	case applying:
		wantTokens, wantDebt = int64(before.answer.Granted), -int64(before.charged)
		if before.isPaid() {
			wantTokens -= int64(before.carried)
			w.admitted += int64(before.carried)
		}
	case failing:
		if before.taken > 0 {
			rule = "L3"
		}
	case refunding:
		wantTokens = int64(n)
		w.admitted -= int64(n)
	case looking:
		if rule = "L4"; to&retired != 0 {
			rule = "L5"
		}
	}
	if debt != wantDebt {
		return fmt.Errorf("L2: %v changed the debt from %d to %d, want %d", th.named(before), from.debt(), to.debt(), int64(from.debt())+wantDebt)
	}
	if tokens != wantTokens {
		return fmt.Errorf("%s: %v changed what is in hand from %d to %d, want %d", rule, th.named(before), from.tokens(), to.tokens(), int64(from.tokens())+wantTokens)
	}
	return nil
}

func (th *thread) isPaid() bool { return th.carried > 0 && th.answer.Granted >= th.carried }

// spent checks and records the change that Take made to tokens and debt (L1, L2).
func (w *world) spent(th *thread, before thread, from state, tokens, debt int64) error {
	n := int64(th.program[before.made].n)
	switch {
	case tokens == 0 && debt == 0:
		return nil
	case tokens == -n && debt == 0:
	case tokens == 0 && debt == n && from&healthy != 0:
	case tokens == 0 && debt == n:
		return fmt.Errorf("L2: %v admitted on overdraft what the store may not have: %v", th.named(before), from)
	default:
		return fmt.Errorf("L1: %v changed what is in hand by %d and the debt by %d", th.named(before), tokens, debt)
	}
	w.admitted += n
	th.paid++
	return nil
}

// flagged checks the flags of a change (L4, L5).
func (w *world) flagged(th *thread, before thread, h *held, from, to state) error {
	if from&^to&renewing != 0 {
		if before.phase != applying && before.phase != failing || h.owner != th {
			return fmt.Errorf("L4: %v ended a renewal that is under way", th.named(before))
		}
		h.owner = nil
	}
	if to&^from&renewing != 0 {
		if before.phase != taking && before.phase != looking {
			return fmt.Errorf("L4: %v began a renewal", th.named(before))
		}
		h.owner, th.debt, th.taken = th, to.debt(), 0
	}
	if is := to&healthy != 0; before.phase == applying && is != (before.answer.Remaining*2 >= w.terms.Limit) || before.phase != applying && (from^to)&healthy != 0 {
		return fmt.Errorf("L2: %v made it %v, and the store has %d left", th.named(before), to, before.answer.Remaining)
	}
	if to&retired == 0 {
		return nil
	}
	if before.phase != looking || to.tokens() > 0 || to.debt() > 0 || to&renewing != 0 {
		return fmt.Errorf("L5: %v retired %v", th.named(before), from)
	}
	if !before.idle || h.touched {
		return fmt.Errorf("L5: %v retired a lease to which something had happened since the last look", th.named(before))
	}
	return nil
}

// serve checks the thread's question (L2 to L4), and makes the store answer it.
func (w *world) serve(th *thread, way int) error {
	th.way, th.answer, th.charged = way, script.Answer{}, 0
	if th.phase != returning {
		h := &w.leases[th.lease-1]
		debt := state(h.lease.word.Peek()).debt()
		switch {
		case h.owner != th:
			return fmt.Errorf("L4: t%d asks the store, and has no duty to", th.name)
		case th.ask.Debt < th.debt || th.ask.Debt > debt:
			return fmt.Errorf("L2: t%d asks the store to charge a debt of %d, want %d to %d", th.name, th.ask.Debt, th.debt, debt)
		case th.ask.Returned != th.taken:
			return fmt.Errorf("L3: t%d gives %d tokens back, and took %d out of hand", th.name, th.ask.Returned, th.taken)
		}
	} else {
		w.admitted -= int64(th.ask.Returned)
	}
	w.tell("t%d  asks %+v: %s", th.name, th.ask, [ways]string{"answered", "the answer is lost", "the question is lost"}[way])
	var answer script.Answer
	if way != questionLost {
		answer = w.store.ask(th.ask, w.terms.Limit)
	}
	switch way {
	case answered:
		th.answer, th.charged = answer, th.ask.Debt
	case answerLost:
		w.stranded += int64(answer.Granted + th.ask.Debt)
	case questionLost:
		w.stranded += int64(th.ask.Returned)
	}
	th.History = interleave.Mix(interleave.Mix(interleave.Mix(th.History, uint64(way)), th.answer.Granted), th.answer.Remaining)
	return nil
}

// check checks the rules for every state, and the answer that the thread has just got (L1, L4, L5).
func (w *world) check(th *thread, plain []fields) error {
	if th.said != nil {
		if err := w.checkTake(th); err != nil {
			return err
		}
	}
	if th.told != nil && *th.told != th.isPaid() {
		return fmt.Errorf("L1: t%d was told paid: %v, with a grant of %d for a request of %d", th.name, *th.told, th.answer.Granted, th.carried)
	}
	if th.gone && state(w.lease(th).word.Peek())&retired == 0 {
		return fmt.Errorf("L5: t%d was told that the lease is gone, and it is not retired", th.name)
	}
	balance := int64(0)
	for i, h := range w.leases {
		s := state(h.lease.word.Peek())
		balance += int64(s.tokens()) - int64(s.debt())
		switch {
		case s.debt() > w.terms.Overdraft:
			return fmt.Errorf("L2: a debt of %d, and the overdraft is %d", s.debt(), w.terms.Overdraft)
		case s.tokens() > w.terms.Cap():
			return fmt.Errorf("L1: %d tokens in hand, want at most %d", s.tokens(), w.terms.Cap())
		case (h.owner != nil) != (s&renewing != 0):
			return fmt.Errorf("L4: %v, and a thread has the duty: %v", s, h.owner != nil)
		case i < len(plain) && h.owner != th && w.fields(i) != plain[i]:
			return fmt.Errorf("L4: t%d wrote fields of the renewal: %+v to %+v", th.name, plain[i], w.fields(i))
		}
	}
	if w.admitted+balance > w.store.net {
		return fmt.Errorf("L1: %d admitted, %d in hand less debt, and the store has charged %d", w.admitted, balance, w.store.net)
	}
	// This is the bound for one node. It allows one overdraft, because no new lease begins before tokens have come
	// back.
	if most := w.terms.Limit - w.scenario.others + w.terms.Overdraft; w.admitted > int64(most)+w.store.back {
		return fmt.Errorf("L5: %d admitted, want at most %d: what the store had and one overdraft", w.admitted, most)
	}
	return nil
}

// checkTake checks the result of Take (L1).
func (w *world) checkTake(th *thread) error {
	verdict, paid, h := th.said.verdict, th.paid, w.leases[th.lease-1]
	th.paid = 0
	gone := state(h.lease.word.Peek())&retired != 0
	switch {
	case gone && verdict == Admitted || !gone && verdict == Retired:
		return fmt.Errorf("L5: t%d was told %d by a lease that is retired: %v", th.name, verdict, gone)
	case (verdict == Admitted) != (paid == 1) || paid > 1:
		return fmt.Errorf("L1: t%d was told %d and charged %d times", th.name, verdict, paid)
	case th.said.renew != (h.owner == th):
		return fmt.Errorf("L4: t%d was told to renew: %v, and has the duty: %v", th.name, th.said.renew, h.owner == th)
	}
	return nil
}

// CheckEnd checks the sum at the end, when no call is in progress (L1). The tokens that the store has charged must be
// those that were admitted, are in hand, or are stranded, minus the debt.
func (w *world) CheckEnd() error {
	balance := w.stranded
	for i, h := range w.leases {
		s := state(h.lease.word.Peek())
		if s&renewing != 0 {
			return fmt.Errorf("L4: lease %d is %v at the end, and no thread renews it", i+1, s)
		}
		balance += int64(s.tokens()) - int64(s.debt())
	}
	if w.admitted+balance != w.store.net {
		return fmt.Errorf("L3: at the end %d were admitted, %d are in hand less debt or stranded, and the store has charged %d", w.admitted, balance, w.store.net)
	}
	return nil
}
