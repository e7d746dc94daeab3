package replay

import "time"

// maxBins is how many bins a series has at most; when there would be more, two become one.
const maxBins = 240

// A Series counts requests over the time of a log, in bins of one length. It takes the same
// room however long the log is. The zero Series is empty.
type Series struct {
	Start time.Time     // of the first bin
	Bin   time.Duration // length of a bin: a second, or twice the one before
	Bins  []Bin
}

// A Bin is what happened in one stretch of time.
type Bin struct{ Requests, Refused uint64 }

// add counts a request at a time that is not before the one of the first.
func (s *Series) add(at time.Time, refused bool) {
	if len(s.Bins) == 0 {
		s.Start, s.Bin = at, time.Second
	}
	i := int(at.Sub(s.Start) / s.Bin)
	for ; i >= maxBins; i /= 2 {
		s.halve()
	}
	for len(s.Bins) <= i {
		s.Bins = append(s.Bins, Bin{})
	}
	s.Bins[i].Requests++
	if refused {
		s.Bins[i].Refused++
	}
}

// halve makes one bin of two.
func (s *Series) halve() {
	for i, b := range s.Bins {
		if i%2 == 0 {
			s.Bins[i/2] = b
			continue
		}
		s.Bins[i/2].Requests += b.Requests
		s.Bins[i/2].Refused += b.Refused
	}
	s.Bins = s.Bins[:(len(s.Bins)+1)/2]
	s.Bin *= 2
}
