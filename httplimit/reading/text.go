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

// texts are the texts with which text patterns are compared: each reading of a path, the reading without the extension
// of its last name, and the reading without the segments after a file.
type texts struct {
	longestPrefix int                  // four times the longest prefix, in bytes; 0 without prefixes
	beginnings    []pathText           // beginnings of the readings, long enough for the longest prefix
	full          []pathText           // complete texts, for expressions
	size          int                  // bytes that an expression reads: twice the size of full
	tooLong       bool                 // expressions would take too long, so they count as met
	seen          [2]map[pathText]bool // the texts in beginnings and in full
}

// A pathText is a path with a slash at the end. The field cut says whether an extension was cut off.
type pathText struct {
	text string
	cut  bool
}

// textsOf returns those texts of the readings that the patterns need.
func textsOf(readings [][]string, patterns func(yield func(*Path) bool)) *texts {
	ts := &texts{seen: [2]map[pathText]bool{{}, {}}}
	expressions := false
	for p := range patterns {
		// Folding may shorten a character from four bytes to one.
		ts.longestPrefix = max(ts.longestPrefix, 4*len(p.prefix))
		expressions = expressions || p.expression != nil
	}
	ts.tooLong = !expressions // without expressions, full is not needed
	for _, segments := range readings {
		ts.addReading(segments)
	}
	return ts
}

func (ts *texts) addReading(segments []string) {
	count := len(segments)
	if segments = ts.read(segments); len(segments) == 0 && count > 0 {
		return
	}
	ts.add(segments, false)
	trimmed := make([]string, len(segments))
	unchanged := true
	for i, s := range segments {
		if trimmed[i] = s; !isOrdinary(s) {
			trimmed[i] = strings.ReplaceAll(trimSegment(s), "/", "%2F") // an escaped slash does not end a segment
			unchanged = unchanged && trimmed[i] == s
		}
	}
	if !unchanged {
		ts.add(trimmed, false)
	}
	const maxFiles = 4
	files := 0
	for i, s := range trimmed {
		first, last := strings.IndexByte(s, '.'), strings.LastIndexByte(s, '.')
		switch {
		case first <= 0:
		case i < count-1:
			if files++; files > maxFiles {
				ts.tooLong = true
			}
			ts.addFull(trimmed[:i+1], false) // prefixes need not be compared with this part
		default:
			for _, end := range []int{first, last} {
				trimmed[i] = s[:end]
				ts.add(trimmed, true)
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
			ts.tooLong = true
		}
		if ts.tooLong && size > ts.longestPrefix {
			return segments[:min(i+1, ts.longestPrefix)]
		}
	}
	return segments
}

func (ts *texts) add(segments []string, cut bool) {
	ts.addFull(segments, cut)
	if ts.longestPrefix == 0 {
		return
	}
	pt := pathText{beginning(segments, ts.longestPrefix), cut}
	if ts.seen[0][pt] {
		return
	}
	ts.seen[0][pt] = true
	ts.beginnings = append(ts.beginnings, pt, pathText{fold(pt.text), cut})
}

func (ts *texts) addFull(segments []string, cut bool) {
	if ts.tooLong {
		return
	}
	pt := pathText{beginning(segments, maxScan), cut}
	if ts.seen[1][pt] {
		return
	}
	ts.seen[1][pt] = true
	ts.full = append(ts.full, pt)
	ts.size += 2 * len(pt.text)
	ts.tooLong = ts.size > maxScan
}

// beginning returns at least the first size bytes of a path, or all of a shorter path. The result has a slash at the
// end, and does not end within a segment.
func beginning(segments []string, size int) string {
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
		for i := 0; i < len(ts.beginnings); i += 2 {
			got, want := ts.beginnings[i], p.prefix
			if !m.KeepCase {
				got, want = ts.beginnings[i+1], p.foldedPrefix
			}
			if strings.HasPrefix(got.text, want) && !(got.cut && m.KeepType) {
				return true
			}
		}
		return false
	}
	expression := p.folded
	if m.KeepCase {
		expression = p.expression
	}
	return ts.tooLong || slices.ContainsFunc(ts.full, func(got pathText) bool {
		slash := got.text
		text := slash[:max(1, len(slash)-1)]
		return !(got.cut && m.KeepType) && (expression.MatchString(text) || len(text) < len(slash) && expression.MatchString(slash))
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
