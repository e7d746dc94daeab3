package spread

// Spend takes a token from a cell. It returns false if the cell has no token, or if another call changed the cell at
// that moment. Then call [Bucket.Take]. Spend touches only the cell's word, and is small enough to be inlined.
func (b *Bucket) Spend(i int) bool {
	w := &b.cells[i&b.mask].word
	c := cell(w.Load())
	return c.canSpend(1) && w.CompareAndSwap(uint64(c), uint64(c.spent(1)))
}

// SpendAt takes n tokens, n >= 1, from a cell. The caller has read the time nanos from the clock. If the cell does not
// have n tokens, the outcome is not Admitted. Otherwise the outcome describes the bucket at some moment within the last
// [Ahead]. It does not count tokens in other cells as left.
func (b *Bucket) SpendAt(i int, n uint64, nanos int64) (o Outcome) {
	h := &b.cells[i&b.mask]
	for {
		c := cell(h.word.Load())
		if !c.canSpend(n) {
			return o
		}
		if h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {
			return b.outcome(h, nanos, c.tokens()-n)
		}
	}
}

// outcome returns the outcome of a request that got its tokens from a cell. The argument left is the number of tokens
// left in the cell.
func (b *Bucket) outcome(h *holder, nanos int64, left uint64) Outcome {
	readAt, s := h.readAt.Load(), state(h.lastState.Load())
	t := b.terms[s.plan()].Load()
	// S7: the terms may have changed since s was read.
	if uint64(nanos-readAt) > uint64(Ahead) || readAt <= t.start.Load() {
		changedAt := int64(b.changedAt.Load())
		s = state(b.shared.Load())
		if t = b.terms[s.plan()].Load(); nanos-changedAt > t.quarter { // S9
			s = s.next(t.Bucket.Ticks(nanos))
		}
		h.lastState.Store(uint64(s))
		h.readAt.Store(nanos)
	}
	owed := s.debt(t.Bucket.Ticks(nanos))
	return Outcome{true, t, owed - min(owed, left*t.Quota.Token), nanos}
}

// Take takes n tokens, n >= 1, or no token. The tokens come from the cell with number i, from the bucket, or from other
// cells.
func (b *Bucket) Take(i int, n uint64) Outcome {
	number := i&b.mask + 1
	h := &b.cells[number-1]
	for {
		v := b.look()
		c := cell(h.word.Load())
		switch {
		case n > v.terms.Quota.Tokens:
			return v.refusal(0)
		case c.kind() == returning:
			b.finish(v, number, c)
		case c.canSpend(n):
			if h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {
				return v.admission(v.owed, c.tokens()-n)
			}
		case v.shortage(n) > 0:
			if o, ok := b.gather(v, number, n); ok {
				return o
			}
		default:
			if o, ok := b.takeFromBucket(v, number, c, n); ok {
				return o
			}
		}
	}
}

// shortage returns by how many ticks the bucket's debt is too large to admit n tokens. The number n must be within the
// limit.
func (v view) shortage(n uint64) uint64 {
	need := v.owed + n*v.terms.Quota.Token
	return need - min(need, v.limit())
}

// takeFromBucket takes n tokens out of the bucket. The bucket must have the tokens. If requests have recently used more
// than n tokens of the cell, takeFromBucket draws more tokens into the cell.
func (b *Bucket) takeFromBucket(v view, number int, c cell, n uint64) (o Outcome, ok bool) {
	h := &b.cells[number-1]
	tokens := min(h.usage(v.nanos), v.terms.share)
	if tokens > n {
		tokens = min(tokens, v.terms.available(v.owed)/v.terms.cells) // S5
	}
	switch {
	case tokens <= n || c.kind() != ready:
		full := v.fullAfterTake(n, v.limit())
		if !b.change(v, v.state.next(full)) {
			return o, false
		}
		h.note(v.nanos, n)
		if c.kind() == drawing {
			h.word.CompareAndSwap(uint64(c), uint64(c.emptied())) // S3
		}
		return v.admission(full-v.now(), 0), true
	case c.tokens() > 0: // fewer than n
		b.giveBack(v, number, c)
		return o, false
	}
	return v.admission(v.fullAfterTake(tokens, v.limit())-v.now(), tokens-n), b.draw(v, number, c, tokens, n)
}

// gather looks for n tokens in all cells, because the bucket has fewer. If one cell has n tokens, gather spends them
// there. If the cells and the bucket together have n tokens, gather returns the tokens of one cell to the bucket, and
// the caller starts over. Otherwise, if the shared word is unchanged, gather refuses the request: there was one moment
// at which the cells and the bucket together did not have n tokens (S6).
func (b *Bucket) gather(v view, number int, n uint64) (o Outcome, ok bool) {
	held := uint64(0)
	for k := range b.cells {
		otherNumber := (number+k)&b.mask + 1
		h := &b.cells[otherNumber-1]
		switch c := cell(h.word.Load()); {
		case c.kind() == returning:
			b.finish(v, otherNumber, c)
			return o, false
		case c.canSpend(n):
			h.count.Store(0)
			if h.word.CompareAndSwap(uint64(c), uint64(c.spent(n))) {
				return v.admission(v.owed, 0), true
			}
			return o, false
		case c.kind() == ready:
			held += c.tokens()
		}
	}
	if held*v.terms.Quota.Token < v.shortage(n) {
		return v.refusal(held), state(b.shared.Load()) == v.state // S6
	}
	for k := range b.cells {
		if c := cell(b.cells[k].word.Load()); c.kind() == ready && c.tokens() > 0 {
			b.giveBack(v, k+1, c)
			break
		}
	}
	return o, false
}

// admission returns the outcome of an admitted request. The arguments are the debt of the bucket in ticks, and the
// tokens in the caller's cell, both after the request.
func (v view) admission(owed, left uint64) Outcome {
	return Outcome{true, v.terms, owed - min(owed, left*v.terms.Quota.Token), v.nanos}
}

// refusal returns the outcome of a refused request. The argument held is the number of tokens in cells at that time.
func (v view) refusal(held uint64) Outcome {
	o := v.admission(v.owed, held)
	o.Admitted = false
	return o
}

// usage returns how many tokens were taken out of the bucket for a cell within the last [Ahead] (S8).
func (h *holder) usage(nanos int64) uint64 {
	if u := h.count.Load(); isRecent(u, nanos) {
		return u & tokenMask
	}
	return 0
}

func (h *holder) note(nanos int64, tokens uint64) {
	u := h.count.Load()
	if !isRecent(u, nanos) {
		u = uint64(nanos) >> 10 << tokenBits
	}
	h.count.Store(u + min(tokens, tokenMask-u&tokenMask))
}

// isRecent reports whether the count in the word u began at most [Ahead] ago. Times in u are in units of
// 1,024 ns.
func isRecent(u uint64, nanos int64) bool {
	return (uint64(nanos)>>10-u>>tokenBits)<<tokenBits>>tokenBits < uint64(Ahead)>>10-1
}
