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
	byFirst map[string][]indexedPattern // patterns by their first segment, in the form of [appendFirst]
	wild    []indexedPattern            // patterns whose first segment is a wildcard, or that have none
	texts   []indexedPattern            // text patterns
	longest int                         // the longest first segment, in bytes
}

// An indexedPattern is a pattern of one of the matches.
type indexedPattern struct {
	match int // index in matches
	path  *Path
}

// NewIndex returns an index of the matches. The matches must not change afterwards.
func NewIndex(matches ...*Match) *Index {
	x := &Index{matches: matches, byFirst: map[string][]indexedPattern{}}
	for i, m := range matches {
		for j := range m.Paths {
			p := &m.Paths[j]
			switch {
			case p.IsText():
				x.texts = append(x.texts, indexedPattern{i, p})
				continue
			case len(p.segments) == 0 || p.segments[0] == anySegment:
				x.wild = append(x.wild, indexedPattern{i, p})
				continue
			}
			form := string(appendFirst(nil, p.segments[0]))
			x.byFirst[form] = append(x.byFirst[form], indexedPattern{i, p})
			x.longest = max(x.longest, len(p.segments[0]))
		}
	}
	return x
}

// Meets is [Match.Meets] of the match with the index i. If the request has a [Parsed], the path is read once for all
// matches. Then a match costs only a lookup if the path does not meet its patterns.
func (x *Index) Meets(i int, r *http.Request, client AddrFunc) bool {
	m := x.matches[i]
	if p := parsedOf(r); p != nil && len(m.Paths) > 0 {
		return p.meets(x, i, r.URL) && m.meetsExceptPath(r, client)
	}
	return m.Meets(r, client)
}

func (p *Parsed) meets(x *Index, i int, u *url.URL) bool {
	readings, ok := p.readings(u)
	if !ok {
		return true
	}
	if p.path.index != x {
		p.path.index, p.path.matched = x, make([]uint64, (len(x.matches)+63)/64)
		for _, segments := range readings {
			p.meetAll(x, x.wild, segments)
			if len(segments) > 0 {
				p.meetFirst(x, segments)
			}
		}
		p.meetTexts(x, readings)
	}
	return p.path.matched[i/64]>>(i%64)&1 != 0
}

// meetFirst records the matches whose patterns begin with the first segment of the path. If the path has only one
// segment, meetFirst also tries this segment without its extension.
func (p *Parsed) meetFirst(x *Index, segments []string) {
	first := segments[0]
	var buffer [64]byte
	p.work += len(first) / 8
	p.meetAll(x, x.byFirst[string(appendFirst(buffer[:0], first))], segments)
	if len(segments) > 1 {
		return
	}
	for i := 0; i < len(first) && i <= x.longest; i++ {
		if first[i] == '.' {
			p.work++
			p.meetAll(x, x.byFirst[string(appendFirst(buffer[:0], first[:i]))], segments)
		}
	}
}

// meetTexts records the matches with a text pattern that meets one of the readings.
func (p *Parsed) meetTexts(x *Index, readings [][]string) {
	if len(x.texts) == 0 {
		return
	}
	ts := textsOf(readings, func(yield func(*Path) bool) {
		for _, pattern := range x.texts {
			if !yield(pattern.path) {
				return
			}
		}
	})
	p.work += len(ts.beginnings)*(1+ts.longestPrefix/8) + ts.size/8
	for _, pattern := range x.texts {
		p.work += 1 + len(ts.beginnings) + ts.size/8
		if pattern.path.meetsText(ts, x.matches[pattern.match]) {
			p.path.matched[pattern.match/64] |= uint64(1) << (pattern.match % 64)
		}
	}
}

func (p *Parsed) meetAll(x *Index, patterns []indexedPattern, segments []string) {
	for _, pattern := range patterns {
		p.work++
		if bit := uint64(1) << (pattern.match % 64); p.path.matched[pattern.match/64]&bit == 0 &&
			pattern.path.meets(segments, x.matches[pattern.match]) {
			p.path.matched[pattern.match/64] |= bit
		}
	}
}

// appendFirst appends a canonical form of a segment. Segments that [sameSegment] treats as equal when it ignores case
// have the same form.
func appendFirst(dst []byte, segment string) []byte {
	segment = trimSegment(segment)
	for i := 0; i < len(segment); {
		c := segment[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(segment[i:])
		smallest := r
		for variant := unicode.SimpleFold(r); variant != r; variant = unicode.SimpleFold(variant) {
			smallest = min(smallest, variant)
		}
		dst = utf8.AppendRune(dst, unicode.ToLower(smallest))
		i += size
	}
	return dst
}

// meetsExceptPath reports whether the request meets all parts of the match except the path.
func (m *Match) meetsExceptPath(r *http.Request, client AddrFunc) bool {
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
