package reading

import (
	"net/http"
	"net/url"
	"unicode"
	"unicode/utf8"
)

// An Index compares a request with many matches. It saves time by trying only some patterns: those that begin with the
// path's first segment, and those whose first segment is not fixed. Its methods are safe for concurrent use.
type Index struct {
	matches []*Match
	first   map[string][]indexed // patterns by their first segment, in the form of [appendFirst]
	any     []indexed            // patterns whose first segment is a wildcard, or that have none
	texts   []indexed            // text patterns
	longest int                  // the longest first segment, in bytes
}

// indexed is a pattern of one of the matches.
type indexed struct {
	match int
	path  *Path
}

// NewIndex returns an index of the matches. The matches must not change afterwards.
func NewIndex(matches ...*Match) *Index {
	x := &Index{matches: matches, first: map[string][]indexed{}}
	for i, m := range matches {
		for j := range m.Paths {
			p := &m.Paths[j]
			switch {
			case p.IsText():
				x.texts = append(x.texts, indexed{i, p})
				continue
			case len(p.segments) == 0 || p.segments[0] == anySegment:
				x.any = append(x.any, indexed{i, p})
				continue
			}
			form := string(appendFirst(nil, p.segments[0]))
			x.first[form] = append(x.first[form], indexed{i, p})
			x.longest = max(x.longest, len(p.segments[0]))
		}
	}
	return x
}

// Meets is [Match.Meets] of the match with the index i. If the request has a [Parsed], the path is read once for all
// matches. A match whose patterns the path does not meet then costs only a lookup.
func (x *Index) Meets(i int, r *http.Request, client AddrFunc) bool {
	m := x.matches[i]
	if p := parsedOf(r); p != nil && len(m.Paths) > 0 {
		return p.meets(x, i, r.URL) && m.meetsBesidePath(r, client)
	}
	return m.Meets(r, client)
}

func (p *Parsed) meets(x *Index, i int, u *url.URL) bool {
	all, ok := p.readings(u)
	if !ok {
		return true
	}
	if p.path.index != x {
		p.path.index, p.path.met = x, make([]uint64, (len(x.matches)+63)/64)
		for _, segments := range all {
			p.meetAll(x, x.any, segments)
			if len(segments) > 0 {
				p.meetFirst(x, segments)
			}
		}
		p.meetTexts(x, all)
	}
	return p.path.met[i/64]>>(i%64)&1 != 0
}

// meetFirst records the matches whose patterns begin with the first segment of the path. If the path has only one
// segment, meetFirst also tries this segment without its extension.
func (p *Parsed) meetFirst(x *Index, segments []string) {
	first := segments[0]
	var room [64]byte
	p.work += len(first) / 8
	p.meetAll(x, x.first[string(appendFirst(room[:0], first))], segments)
	if len(segments) > 1 {
		return
	}
	for i := 0; i < len(first) && i <= x.longest; i++ {
		if first[i] == '.' {
			p.work++
			p.meetAll(x, x.first[string(appendFirst(room[:0], first[:i]))], segments)
		}
	}
}

// meetTexts records the matches with a text pattern that meets one of the readings.
func (p *Parsed) meetTexts(x *Index, all [][]string) {
	if len(x.texts) == 0 {
		return
	}
	ts := textsOf(all, func(yield func(*Path) bool) {
		for _, of := range x.texts {
			if !yield(of.path) {
				return
			}
		}
	})
	p.work += len(ts.begins)*(1+ts.longest/8) + ts.size/8
	for _, of := range x.texts {
		p.work += 1 + len(ts.begins) + ts.size/8
		if of.path.meetsText(ts, x.matches[of.match]) {
			p.path.met[of.match/64] |= uint64(1) << (of.match % 64)
		}
	}
}

func (p *Parsed) meetAll(x *Index, all []indexed, segments []string) {
	for _, of := range all {
		p.work++
		if bit := uint64(1) << (of.match % 64); p.path.met[of.match/64]&bit == 0 &&
			of.path.meets(segments, x.matches[of.match]) {
			p.path.met[of.match/64] |= bit
		}
	}
}

// appendFirst appends a canonical form of a segment. Segments that [sameSegment] treats as equal when it ignores case
// have the same form.
func appendFirst(to []byte, segment string) []byte {
	segment = trimSegment(segment)
	for i := 0; i < len(segment); {
		c := segment[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			to = append(to, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(segment[i:])
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		to = utf8.AppendRune(to, unicode.ToLower(least))
		i += size
	}
	return to
}

// meetsBesidePath reports whether the request meets all parts of the match except the path.
func (m *Match) meetsBesidePath(r *http.Request, client AddrFunc) bool {
	return m.MatchesHost(r.Host) && m.meetsMethods(r) && m.meetsFields(r) && m.meetsQuery(r) && m.matchesClient(r, client) && !m.isExcepted(r, client)
}

// isExcepted reports whether the request certainly matches one of the matches in Not.
func (m *Match) isExcepted(r *http.Request, client AddrFunc) bool {
	for i := range m.Not {
		if m.Not[i].IsCertain(r, client) {
			return true
		}
	}
	return false
}
