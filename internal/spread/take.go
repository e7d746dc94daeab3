package spread

// Spend takes a token from a cell, and reports whether it was there, and no other call had the cell at the moment. If
// not, [Bucket.Take] takes it. It touches no word but the cell's, and is small enough to be compiled into its caller.
func (b *Bucket) Spend(i int) bool {
	w := &b.cells[i&b.mask].word
	c := cell(w.Load())
	return c.pays(1) && w.CompareAndSwap(uint64(c), uint64(c.spent(1)))
}

// SpendAt takes n tokens, at least 1, from a cell at a time of the clock. What the outcome says of the bucket was so
// [Ahead] ago or later, and leaves out what other cells hold. If the tokens were not there, it is not Admitted.
func (b *Bucket) SpendAt(i int, n uint64, nanos int64) (o Outcome) {
	h := &b.cells[i&b.mask]
	for {
		c := cell(h.word.Load())
		if !c.pays(n) {
			return o
		}
		if h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {
			return b.outcome(h, nanos, c.tokens()-n)
		}
	}
}

// outcome returns that of a request that was paid from a cell, which has so many tokens left.
func (b *Bucket) outcome(h *held, nanos int64, left uint64) Outcome {
	met, s := h.met.Load(), state(h.seen.Load())
	t := b.terms[s.plan()].Load()
	if uint64(nanos-met) > uint64(Ahead) || met <= t.begin.Load() { // S7: these may be others than it was met with
		at := int64(b.at.Load())
		s = state(b.shared.Load())
		if t = b.terms[s.plan()].Load(); nanos-at > t.quarter { // S9
			s = s.next(t.Bucket.Ticks(nanos))
		}
		h.seen.Store(uint64(s))
		h.met.Store(nanos)
	}
	owed := s.debt(t.Bucket.Ticks(nanos))
	return Outcome{true, t, owed - min(owed, left*t.Quota.Token), nanos}
}

// Take takes n tokens, at least 1, all or none, for a call that runs beside a cell: from the cell, from the bucket, or
// from other cells.
func (b *Bucket) Take(i int, n uint64) Outcome {
	who := i&b.mask + 1
	h := &b.cells[who-1]
	for {
		v := b.look()
		c := cell(h.word.Load())
		switch {
		case n > v.terms.Quota.Tokens:
			return v.refuses(0)
		case c.kind() == returning:
			b.finish(v, who, c)
		case c.pays(n):
			if h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {
				return v.admits(v.owed, c.tokens()-n)
			}
		case v.lacks(n) > 0:
			if o, ok := b.gather(v, who, n); ok {
				return o
			}
		default:
			if o, ok := b.takeHere(v, who, c, n); ok {
				return o
			}
		}
	}
}

// lacks returns the ticks that the bucket owes too many to pay n tokens, which are within the limit.
func (v view) lacks(n uint64) uint64 {
	need := v.owed + n*v.terms.Quota.Token
	return need - min(need, v.limit())
}

// takeHere takes n tokens out of the bucket, which has them, and others for the cell if that uses them up.
func (b *Bucket) takeHere(v view, who int, c cell, n uint64) (o Outcome, ok bool) {
	h := &b.cells[who-1]
	tokens := min(h.usage(v.nanos), v.terms.share)
	if tokens > n {
		tokens = min(tokens, v.terms.spare(v.owed)/v.terms.cells) // S5
	}
	switch {
	case tokens <= n || c.kind() != ready:
		full := v.after(n, v.limit())
		if !b.change(v, v.state.next(full)) {
			return o, false
		}
		h.note(v.nanos, n)
		if c.kind() == drawing {
			h.word.CompareAndSwap(uint64(c), uint64(c.emptied())) // S3
		}
		return v.admits(full-v.now(), 0), true
	case c.tokens() > 0: // less than n
		b.giveBack(v, who, c)
		return o, false
	}
	return v.admits(v.after(tokens, v.limit())-v.now(), tokens-n), b.draw(v, who, c, tokens, n)
}

// gather looks for n tokens in all cells, when the bucket has fewer. Those of one cell are spent there. Those of
// several are given back to the bucket, for the next round. If there are not enough, and the shared word is still what
// it was, there were not enough at that moment (S6), and the request is refused.
func (b *Bucket) gather(v view, who int, n uint64) (o Outcome, ok bool) {
	held := uint64(0)
	for k := range b.cells {
		other := (who+k)&b.mask + 1
		h := &b.cells[other-1]
		switch c := cell(h.word.Load()); {
		case c.kind() == returning:
			b.finish(v, other, c)
			return o, false
		case c.pays(n):
			h.used.Store(0)
			if h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {
				return v.admits(v.owed, 0), true
			}
			return o, false
		case c.kind() == ready:
			held += c.tokens()
		}
	}
	if held*v.terms.Quota.Token < v.lacks(n) {
		return v.refuses(held), state(b.shared.Load()) == v.state // S6
	}
	for k := range b.cells {
		if c := cell(b.cells[k].word.Load()); c.kind() == ready && c.tokens() > 0 {
			b.giveBack(v, k+1, c)
			break
		}
	}
	return o, false
}

// admits returns the outcome of a request that left the bucket with such a debt and the caller's cell with so many
// tokens.
func (v view) admits(owed, left uint64) Outcome {
	return Outcome{true, v.terms, owed - min(owed, left*v.terms.Quota.Token), v.nanos}
}

// refuses returns the outcome of a request that was refused while cells had so many tokens.
func (v view) refuses(held uint64) Outcome {
	o := v.admits(v.owed, held)
	o.Admitted = false
	return o
}

// usage returns how many tokens were taken out of the bucket for a cell that has used them up, in the last [Ahead] at
// most (S8).
func (h *held) usage(nanos int64) uint64 {
	if u := h.used.Load(); since(u, nanos) {
		return u & tokenMask
	}
	return 0
}

// note enters that so many tokens were taken.
func (h *held) note(nanos int64, tokens uint64) {
	u := h.used.Load()
	if !since(u, nanos) {
		u = uint64(nanos) >> 10 << tokenBits
	}
	h.used.Store(u + min(tokens, tokenMask-u&tokenMask))
}

// since reports whether u counts since a time that is [Ahead] ago at most, in steps of 1,024 ns.
func since(u uint64, nanos int64) bool {
	return (uint64(nanos)>>10-u>>tokenBits)<<tokenBits>>tokenBits < uint64(Ahead)>>10-1
}
