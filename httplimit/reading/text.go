package reading

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// ParsePrefix makes a Path of all paths that begin with a text, whether a segment ends there or not: "/log" means
// "/login" and "/log/in". The error says what is wrong with a text that begins with no slash, or has an escape, a
// query, an empty segment or a dot segment.
func ParsePrefix(text string) (Path, error) {
	p := Path{text: "prefix " + text, prefix: text}
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
		return p, errors.New("empty segments, . and .. are taken out before paths are compared, so this would match nothing")
	}
	return p, nil
}

// ParseRegexp makes a Path of all paths that a regular expression in the syntax of package [regexp] matches. It is
// held against the path without escapes, dots and double slashes, as "/users/42", for a limit also with a slash at the
// end. A match may begin anywhere unless the expression begins with ^, and end anywhere unless it ends with $. The
// error is that of [regexp.Compile], or says that the text is empty.
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

// IsText reports whether the pattern is one of [ParsePrefix] or [ParseRegexp], which is held against the text of a
// path.
func (p *Path) IsText() bool { return p.prefix != "" || p.expression != nil }

// maxScan is how many bytes of paths expressions read for one request, with all its readings. What they do not read
// matches, as a path does that is too long.
const maxScan = 64 << 10

// meetsText is meets of a pattern that [Path.IsText]. scanned is what expressions have read so far.
func (p *Path) meetsText(segments []string, m *Match, scanned *int) bool {
	if p.textMeets(segments, m, scanned) {
		return true
	}
	other := make([]string, len(segments))
	for i, s := range segments {
		other[i] = strings.ReplaceAll(trimSegment(s), "/", "%2F") // a slash that ends no segment
	}
	return !slices.Equal(other, segments) && p.textMeets(other, m, scanned) || p.meetsShorter(other, m, scanned)
}

// meetsShorter tries the segments without the extension of the last one, and without what stands behind a file.
func (p *Path) meetsShorter(segments []string, m *Match, scanned *int) bool {
	const mostFiles = 4
	files := 0
	for i, s := range segments {
		first, last := strings.IndexByte(s, '.'), strings.LastIndexByte(s, '.')
		switch {
		case first <= 0:
			continue
		case i < len(segments)-1:
			if files++; files > mostFiles || p.textMeets(segments[:i+1], m, scanned) {
				return true
			}
			continue
		case m.KeepType:
			return false
		}
		for _, end := range []int{first, last} {
			if p.textMeets(append(slices.Clone(segments[:i]), s[:end]), m, scanned) {
				return true
			}
		}
	}
	return false
}

// textMeets holds the pattern against segments with and without a slash at the end.
func (p *Path) textMeets(segments []string, m *Match, scanned *int) bool {
	text := "/" + strings.Join(segments, "/")
	slash := text
	if len(segments) > 0 {
		slash += "/"
	}
	if p.expression == nil {
		if m.KeepCase {
			return strings.HasPrefix(slash, p.prefix)
		}
		return strings.HasPrefix(fold(slash), fold(p.prefix))
	}
	if *scanned += len(text) + len(slash); *scanned > maxScan {
		return true
	}
	of := p.folded
	if m.KeepCase {
		of = p.expression
	}
	return of.MatchString(text) || of.MatchString(slash)
}

// textMatches is Matches of a pattern that [Path.IsText], of a clean path with the slash that it ends with.
func (p *Path) textMatches(text string) bool {
	if p.expression != nil {
		return p.expression.MatchString(text)
	}
	return strings.HasPrefix(text, p.prefix)
}
