package spread

// Spend takes a token from a cell. It returns false if the cell has no token, or if another call changed the cell at
// that moment. Then call [Bucket.Take]. Spend touches only the cell's word, and is small enough to be inlined.
func (b *Bucket) Spend(i int) bool {
	w := &b.cells[i&b.mask].word
	c := cell(w.Load())
	return c.pays(1) && w.CompareAndSwap(uint64(c), uint64(c.spent(1)))
}

// SpendAt takes n tokens, n >= 1, from a cell. The caller has read the time nanos from the clock. If the cell does not
// have n tokens, the outcome is not Admitted. Otherwise the outcome describes the bucket at some moment within the last
// [Ahead]. It does not count tokens in other cells as left.
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

// outcome returns the outcome of a request that got its tokens from a cell. The argument left is the number of tokens
// left in the cell.
func (b *Bucket) outcome(h *held, nanos int64, left uint64) Outcome {
	met, s := h.met.Load(), state(h.seen.Load())
	t := b.terms[s.plan()].Load()
	if uint64(nanos-met) > uint64(Ahead) || met <= t.begin.Load() { // S7: the terms may have changed since s was read
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

// Take takes n tokens, n >= 1, or no token. The tokens come from the cell with number i, from the bucket, or from other
// cells.
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

// lacks returns by how many ticks the bucket's debt is too large to admit n tokens. The number n must be within the
// limit.
func (v view) lacks(n uint64) uint64 {
	need := v.owed + n*v.terms.Quota.Token
	return need - min(need, v.limit())
}

// takeHere takes n tokens out of the bucket. The bucket must have the tokens. If the cell has recently used more than n
// tokens, takeHere draws more tokens into the cell.
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
	case c.tokens() > 0: // fewer than n
		b.giveBack(v, who, c)
		return o, false
	}
	return v.admits(v.after(tokens, v.limit())-v.now(), tokens-n), b.draw(v, who, c, tokens, n)
}

// gather looks for n tokens in all cells, because the bucket has fewer. If one cell has n tokens, gather spends them
// there. If the cells and the bucket together have n tokens, gather returns the tokens of one cell to the bucket, and
// the caller starts over. Otherwise, if the shared word is unchanged, gather refuses the request: there was one moment
// at which the cells and the bucket together did not have n tokens (S6).
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

// admits returns the outcome of an admitted request. The arguments are the debt of the bucket in ticks, and the tokens
// in the caller's cell, both after the request.
func (v view) admits(owed, left uint64) Outcome {
	return Outcome{true, v.terms, owed - min(owed, left*v.terms.Quota.Token), v.nanos}
}

// refuses returns the outcome of a refused request. The argument held is the number of tokens in cells at that time.
func (v view) refuses(held uint64) Outcome {
	o := v.admits(v.owed, held)
	o.Admitted = false
	return o
}

// usage returns how many tokens were taken out of the bucket for a cell within the last [Ahead] (S8).
func (h *held) usage(nanos int64) uint64 {
	if u := h.used.Load(); since(u, nanos) {
		return u & tokenMask
	}
	return 0
}

func (h *held) note(nanos int64, tokens uint64) {
	u := h.used.Load()
	if !since(u, nanos) {
		u = uint64(nanos) >> 10 << tokenBits
	}
	h.used.Store(u + min(tokens, tokenMask-u&tokenMask))
}

// The function since reports whether the count in the word u began at most [Ahead] ago. Times in u are in units of
// 1,024 ns.
func since(u uint64, nanos int64) bool {
	return (uint64(nanos)>>10-u>>tokenBits)<<tokenBits>>tokenBits < uint64(Ahead)>>10-1
}
