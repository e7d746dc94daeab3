package reading

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// ParsePrefix returns a Path for all paths that begin with a text. The text may end within a segment: "/log" matches
// "/login" and "/log/in". It must begin with a slash, and must not have an escape, a query, an empty segment or a dot
// segment. Otherwise ParsePrefix returns an error.
func ParsePrefix(text string) (Path, error) {
	p := Path{text: "prefix " + text, prefix: text, foldedPrefix: fold(text)}
	switch plain, err := url.PathUnescape(text); {
	case !strings.HasPrefix(text, "/"):
		return p, errors.New("a prefix begins with a slash")
	case strings.ContainsAny(text, "?#"):
		return p, errors.New("a query or fragment is not part of the path")
	case err != nil || plain != text:
		return p, errors.New("write it without escapes: they are undone before paths are compared")
	case slices.ContainsFunc(strings.Split(strings.Trim(text, "/"), "/"), func(s string) bool {
		return s == "" && text != "/" || s == "." || s == ".."
	}), strings.HasPrefix(text, "//"), text != "/" && strings.HasSuffix(text, "//"):
		return p, errors.New("empty segments, . and .. are removed before paths are compared, so this would match nothing")
	}
	return p, nil
}

// ParseRegexp returns a Path for all paths that a regular expression of package [regexp] matches. The expression is
// compared with the path without escapes, dots and double slashes, such as "/users/42". For a limit, it is also
// compared with this path followed by a slash. Without ^, a match may begin anywhere. Without $, it may end anywhere.
// ParseRegexp returns the error of [regexp.Compile], or an error for an empty text.
func ParseRegexp(text string) (p Path, err error) {
	p.text = "regex " + text
	if text == "" {
		return p, errors.New("an empty expression matches every path: leave it out")
	}
	if _, err = regexp.Compile(text); err != nil {
		return p, err
	}
	p.expression, p.folded = regexp.MustCompile("(?s)"+text), regexp.MustCompile("(?is)"+text)
	return p, nil
}

// IsText reports whether the pattern is compared with the text of a path ([ParsePrefix], [ParseRegexp]).
func (p *Path) IsText() bool { return p.prefix != "" || p.expression != nil }

// maxScan bounds the bytes that an expression reads in all readings of a path together. With more bytes, the path
// meets all expressions.
const maxScan = 4 << 10

// texts has the texts with which text patterns are compared: each reading of a path, the reading without the extension
// of its last name, and the reading without the segments after a file.
type texts struct {
	longest int                  // four times the longest prefix, in bytes; 0 without prefixes
	begins  []pathText           // beginnings of the readings, long enough for the longest prefix
	whole   []pathText           // complete texts, for expressions
	size    int                  // bytes that an expression reads: twice the size of whole
	long    bool                 // expressions would take too long, so they count as met
	seen    [2]map[pathText]bool // the texts in begins and in whole
}

// A pathText is a path with a slash at the end. The field cut says whether an extension was cut off.
type pathText struct {
	text string
	cut  bool
}

// textsOf returns those texts of the readings that the patterns need.
func textsOf(all [][]string, patterns func(yield func(*Path) bool)) *texts {
	ts := &texts{seen: [2]map[pathText]bool{{}, {}}}
	expressions := false
	for p := range patterns {
		ts.longest = max(ts.longest, 4*len(p.prefix)) // folding may shorten a character from four bytes to one
		expressions = expressions || p.expression != nil
	}
	ts.long = !expressions // without expressions, whole is not needed
	for _, segments := range all {
		ts.addReading(segments)
	}
	return ts
}

func (ts *texts) addReading(segments []string) {
	whole := len(segments)
	if segments = ts.read(segments); len(segments) == 0 && whole > 0 {
		return
	}
	ts.add(segments, false)
	other := make([]string, len(segments))
	same := true
	for i, s := range segments {
		if other[i] = s; !isOrdinary(s) {
			other[i] = strings.ReplaceAll(trimSegment(s), "/", "%2F") // an escaped slash does not end a segment
			same = same && other[i] == s
		}
	}
	if !same {
		ts.add(other, false)
	}
	const mostFiles = 4
	files := 0
	for i, s := range other {
		first, last := strings.IndexByte(s, '.'), strings.LastIndexByte(s, '.')
		switch {
		case first <= 0:
		case i < whole-1:
			if files++; files > mostFiles {
				ts.long = true
			}
			ts.addWhole(other[:i+1], false) // prefixes need not be compared with this part
		default:
			for _, end := range []int{first, last} {
				other[i] = s[:end]
				ts.add(other, true)
			}
		}
	}
}

// read returns the segments that patterns need. An expression needs all segments. A prefix needs only the first ones,
// up to its length.
func (ts *texts) read(segments []string) []string {
	size := len("/")
	for i, s := range segments {
		if size += len(s) + len("/"); size > maxScan {
			ts.long = true
		}
		if ts.long && size > ts.longest {
			return segments[:min(i+1, ts.longest)]
		}
	}
	return segments
}

func (ts *texts) add(segments []string, cut bool) {
	ts.addWhole(segments, cut)
	if ts.longest == 0 {
		return
	}
	of := pathText{begin(segments, ts.longest), cut}
	if ts.seen[0][of] {
		return
	}
	ts.seen[0][of] = true
	ts.begins = append(ts.begins, of, pathText{fold(of.text), cut})
}

func (ts *texts) addWhole(segments []string, cut bool) {
	if ts.long {
		return
	}
	of := pathText{begin(segments, maxScan), cut}
	if ts.seen[1][of] {
		return
	}
	ts.seen[1][of] = true
	ts.whole = append(ts.whole, of)
	ts.size += 2 * len(of.text)
	ts.long = ts.size > maxScan
}

// begin returns at least the first size bytes of a path, or all of a shorter path. The result has a slash at the end,
// and does not end within a segment.
func begin(segments []string, size int) string {
	var b strings.Builder
	b.WriteByte('/')
	for _, s := range segments {
		b.WriteString(s)
		b.WriteByte('/')
		if b.Len() > size {
			break
		}
	}
	return b.String()
}

// meetsText reports whether a text pattern ([Path.IsText]) matches one of the texts.
func (p *Path) meetsText(ts *texts, m *Match) bool {
	if p.expression == nil {
		for i := 0; i < len(ts.begins); i += 2 {
			as, want := ts.begins[i], p.prefix
			if !m.KeepCase {
				as, want = ts.begins[i+1], p.foldedPrefix
			}
			if strings.HasPrefix(as.text, want) && !(as.cut && m.KeepType) {
				return true
			}
		}
		return false
	}
	of := p.folded
	if m.KeepCase {
		of = p.expression
	}
	return ts.long || slices.ContainsFunc(ts.whole, func(as pathText) bool {
		slash := as.text
		text := slash[:max(1, len(slash)-1)]
		return !(as.cut && m.KeepType) && (of.MatchString(text) || len(text) < len(slash) && of.MatchString(slash))
	})
}

// textMatches is Matches for a text pattern ([Path.IsText]). The parameter text is a clean path with a slash at the
// end.
func (p *Path) textMatches(text string) bool {
	if p.expression != nil {
		return p.expression.MatchString(text)
	}
	return strings.HasPrefix(text, p.prefix)
}
