package suggest

import "math"

// beyond is how many lower steps are tried when one was found.
const beyond = 8

// all is more than are ever refused: they are counted to the last.
const all = math.MaxUint64

// A search looks for the least step of a scale that refuses at most so many. It says which steps it wants to have
// tried, so that those of many searches can be tried together.
//
// It tries the lowest first, halves, and then looks at some that are lower still. More tokens do not refuse more, by
// and large: but the engine rounds some rates by a nanosecond, which costs a token where stamps are whole seconds, and
// costs and refunds may differ. So there may be a lower one yet; that this one does, and that the next lower one does
// not, was seen.
type search struct {
	scale   scale
	allowed uint64
	refused map[int]uint64 // by the steps that were tried: up to one more than is allowed
	wanted  []int

	best  int // the least step that does; none below 0
	found *Point
}

func newSearch(s scale, allowed uint64) *search {
	return &search{scale: s.made(), allowed: allowed, refused: map[int]uint64{}, best: -1}
}

// does reports whether a step refuses few enough, if that is known. If not it is wanted, and the next lower ones with
// it.
func (q *search) does(i, lower int) (does, known bool) {
	if n, ok := q.refused[i]; ok {
		return n <= q.allowed, true
	}
	for ; i >= 0 && lower >= 0; i, lower = i-1, lower-1 {
		if _, ok := q.refused[i]; !ok {
			q.wanted = append(q.wanted, i)
		}
	}
	return false, false
}

// advance goes on with what was tried, until more is wanted or best is found, and reports whether it is.
func (q *search) advance() (done bool) {
	q.wanted = nil
	last := len(q.scale) - 1
	if last < 0 {
		return true
	}
	for _, end := range []int{0, last} {
		if does, known := q.does(end, 0); !known {
			return false
		} else if does && end == 0 {
			q.best = 0
			return true
		} else if !does && end == last {
			return true
		}
	}
	low, high := 0, last // low refuses too many, high few enough
	for high-low > 1 {
		middle := low + (high-low)/2
		does, known := q.does(middle, 0)
		switch {
		case !known:
			return false
		case does:
			high = middle
		default:
			low = middle
		}
	}
	for i, left := high-1, beyond; i >= 0 && left > 0; i-- {
		does, known := q.does(i, left-1)
		switch {
		case !known:
			return false
		case does:
			high, left = i, beyond
		default:
			left--
		}
	}
	q.best = high
	return true
}

// lowest finds the point of the least step of each scale that refuses at most so many; nil where none does. After a
// bucket for which every rate will do, those of larger bursts are left out: every rate does for them, too.
func (r *requests) lowest(scales []scale, allowed uint64, progress func(done, all int)) ([]*Point, error) {
	searches := make([]*search, len(scales))
	for i, s := range scales {
		searches[i] = newSearch(s, allowed)
	}
	for {
		var trials []trial
		done := 0
		for i, q := range searches {
			if q.advance() {
				done++
				if q.best == 0 && q.scale[0].window == 0 {
					searches = searches[:i+1]
					break
				}
			}
			for _, step := range q.wanted {
				trials = append(trials, trial{q, step, allowed})
			}
		}
		if progress != nil {
			progress(done, len(scales))
		}
		if len(trials) == 0 {
			break
		}
		if err := r.tryAll(trials); err != nil {
			return nil, err
		}
	}
	points := make([]*Point, len(searches))
	var below []trial
	for i, q := range searches {
		if q.best < 0 {
			continue
		}
		p := q.scale[q.best].point()
		p.Refused = q.refused[q.best]
		points[i], q.found = &p, &p
		if q.best > 0 {
			below = append(below, trial{q, q.best - 1, all})
		}
	}
	if err := r.tryAll(below); err != nil {
		return nil, err
	}
	for _, t := range below {
		t.found.Lower, t.found.LowerRefused = t.scale[t.step].Rate, t.refused[t.step]
	}
	return points, nil
}

// A trial is a step that a search wants to have tried.
type trial struct {
	*search
	step   int
	enough uint64
}

func (r *requests) tryAll(trials []trial) error {
	candidates := make([]*candidate, len(trials))
	for i, t := range trials {
		var err error
		if candidates[i], err = newCandidate(t.scale[t.step].Policy(), t.enough); err != nil {
			return err
		}
	}
	if err := r.try(candidates); err != nil {
		return err
	}
	for i, t := range trials {
		t.refused[t.step] = candidates[i].refused
	}
	return nil
}
