package replay

import "time"

// maxBins bounds the bins of a series. If there would be more, the bins become longer.
const maxBins = 240

// binLengths has the lengths of a bin. Each is a multiple of the previous one, so that bins can be merged.
var binLengths = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
	364 * 24 * time.Hour, 3640 * 24 * time.Hour,
}

// A Series counts requests over the time of a log, in bins of equal length. Bins start at multiples of this length
// since 1970. The size of a Series does not depend on the length of the log. The zero Series is empty.
type Series struct {
	Start time.Time     // start of the first bin
	Bin   time.Duration // length of a bin
	Bins  []Bin

	first, level int64 // number of the first bin; index of Bin in binLengths
}

// A Bin counts the requests of one interval.
type Bin struct{ Requests, Refused uint64 }

// add counts a request. The first request must be the earliest.
func (s *Series) add(at time.Time, refused bool) {
	if len(s.Bins) == 0 {
		s.Bin, s.first = binLengths[0], at.UnixNano()/int64(binLengths[0])
	}
	for at.UnixNano()/int64(s.Bin)-s.first >= maxBins {
		s.lengthen()
	}
	i := int(at.UnixNano()/int64(s.Bin) - s.first)
	for len(s.Bins) <= i {
		s.Bins = append(s.Bins, Bin{})
	}
	s.Bins[i].Requests++
	if refused {
		s.Bins[i].Refused++
	}
	s.Start = time.Unix(0, s.first*int64(s.Bin))
}

// lengthen merges the bins into bins of the next length.
func (s *Series) lengthen() {
	s.level++
	ratio := int64(binLengths[s.level] / s.Bin)
	s.Bin = binLengths[s.level]
	first := s.first / ratio
	last := (s.first + int64(len(s.Bins)) - 1) / ratio
	merged := make([]Bin, last-first+1)
	for i, b := range s.Bins {
		bin := &merged[(s.first+int64(i))/ratio-first]
		bin.Requests += b.Requests
		bin.Refused += b.Refused
	}
	s.Bins, s.first = merged, first
}
