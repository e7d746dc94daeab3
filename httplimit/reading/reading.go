package reading

import (
	"net/url"
	"strings"

	"github.com/weir-go/weir/internal/spelling"
)

// Servers read a path in several ways:
//
//   - They undo escapes before or after they split the path, and twice if a proxy in front undoes them, too.
//   - They remove ";x" from a segment or keep it.
//   - They resolve dots or keep them.
//   - They treat a backslash as a slash or not.
//
// If a limit and the server differ in this, a client can avoid the limit. So a pattern is compared with every reading.

// A reading is one way to read a path. The zero reading splits the path and then undoes the escapes in each segment. It
// changes nothing else.
type reading struct {
	unescapeFirst bool // escapes are undone before the path is split: %2f is a slash
	twice         bool // escapes are undone twice: %2541 is A
	backslash     bool // a backslash is a slash
	parameters    parameters
	dots          dots
}

// parameters says how a reading treats a semicolon in a segment and the text after it.
type parameters uint8

const (
	parametersKept parameters = iota
	parametersCut             // they are removed before escapes are undone, so %3b is not a semicolon
	parametersCutAlways
	parametersEnd
)

// dots says what a reading does with the segments . and ..
type dots uint8

const (
	dotsKept         dots = iota // they are ordinary names
	dotsSent                     // dots sent without escapes are resolved; .. may also remove an empty segment
	dotsSentMerged               // the same, after empty segments were removed
	dotsAlways                   // all dots are resolved
	dotsAlwaysMerged             // the same, after empty segments were removed
	dotsEnd
)

// These constants bound the work that a client can cause by a path. No ordinary program sends a longer path. maxPath
// bounds the bytes of the path. maxRead bounds these bytes times the number of readings. maxSplit bounds the segments
// times the number of readings.
const (
	maxPath  = 8 << 10
	maxRead  = 8 << 10
	maxSplit = 2 << 10
)

// readings makes the readings of a path, one after the other.
type readings struct {
	escaped   string
	unescaped string // the unescaped path, if it still has escapes; it is also read as if it had been sent
	afterHost string // the path after //name, for servers that treat name as a host; it is also read
	plain     bool   // all readings are the same
	current   reading
	done      bool
	keepsDots bool // no reading resolves dots

	features
}

// features has the properties of a path that make its readings differ.
type features struct {
	slashes                 bool // the path has escaped slashes
	backslashes, semicolons bool // the path without escapes has backslashes, semicolons
	dotted                  bool // a segment begins with a dot
}

// union returns the properties that at least one of two paths has.
func (f features) union(g features) features {
	return features{
		f.slashes || g.slashes, f.backslashes || g.backslashes, f.semicolons || g.semicolons, f.dotted || g.dotted,
	}
}

// count returns how many readings a path with these properties has.
func (f features) count() int {
	n := 1
	if f.dotted {
		n *= int(dotsEnd)
	}
	if f.semicolons {
		n *= int(parametersEnd)
	}
	if f.backslashes {
		n *= 2
	}
	if f.slashes {
		n *= 2
	}
	return n
}

func readingsOf(u *url.URL) readings {
	if len(u.Path) > len("/")+maxPath {
		return readings{escaped: u.Path, plain: true} // too long
	}
	escaped := u.EscapedPath()
	if isPlain(escaped) {
		return readings{escaped: strings.TrimPrefix(escaped, "/"), plain: true}
	}
	rs := readingsOfText(escaped, u.Path)
	if spelling.HasEscapes(u.Path) {
		rs.unescaped = u.Path
	}
	rs.afterHost = pathAfterHost(escaped)
	return rs
}

// pathAfterHost returns the part of a path such as //name/path after the name. If the path does not begin with several
// slashes, it returns "". This part matters because programs that resolve the path against the server's URL (new
// URL(path, base)) treat the name as a host.
func pathAfterHost(escaped string) string {
	rest := strings.TrimLeft(escaped, "/")
	if len(escaped)-len(rest) < 2 || rest == "" {
		return ""
	}
	_, after, _ := strings.Cut(rest, "/")
	return "/" + after
}

// readingsOfText returns the readings of a path. The parameter escaped is the path as it was sent, and plain is the
// path without escapes.
func readingsOfText(escaped, plain string) readings {
	return readings{
		escaped: strings.TrimPrefix(escaped, "/"),
		plain:   isPlain(escaped),
		features: features{
			slashes:     strings.Count(plain, "/") != strings.Count(escaped, "/"),
			backslashes: strings.Contains(plain, `\`),
			semicolons:  strings.Contains(plain, ";"),
			dotted:      strings.Contains(plain, "/.") || strings.Contains(plain, `\.`),
		},
	}
}

// isPlain reports whether every server reads an escaped path in the same way. Such a path has no escapes, semicolons or
// backslashes, and no segment that is or ends with dots. Only its last segment may be empty.
func isPlain(escaped string) bool {
	for _, c := range []byte(`%;\`) { // ContainsAny takes longer
		if strings.IndexByte(escaped, c) >= 0 {
			return false
		}
	}
	hasDot := strings.IndexByte(escaped, '.') >= 0
	return !strings.Contains(escaped, "//") && !strings.Contains(escaped, streamPrefix) && (!hasDot ||
		!strings.Contains(escaped, "/.") && !strings.Contains(escaped, "./") && !strings.HasSuffix(escaped, "."))
}

// tooLong reports whether reading the path would be too much work. Such a path is not read.
func (rs *readings) tooLong() bool {
	if len(rs.escaped) > maxPath {
		return true
	}
	if rs.plain && len(rs.escaped) < maxSplit {
		return false
	}
	n := 1
	if !rs.plain {
		n = rs.count()
	}
	if rs.unescaped != "" {
		twice := readingsOfText(rs.unescaped, spelling.Unescape(rs.unescaped)).features
		n += rs.union(twice).count() + twice.count()
	}
	if rs.afterHost != "" {
		n += readingsOfText(rs.afterHost, spelling.Unescape(rs.afterHost)).count()
	}
	split := rs.escaped
	if rs.slashes || rs.backslashes {
		split = spelling.Unescape(split)
	}
	if rs.unescaped != "" {
		split = spelling.Unescape(rs.unescaped)
	}
	segments := 1 + strings.Count(split, "/") + strings.Count(split, `\`)
	return n*len(rs.escaped) > maxRead || n*segments > maxSplit
}

// next appends the segments of the next reading to a slice. It leaves out empty segments. After the last reading, ok is
// false.
func (rs *readings) next(dst []string) ([]string, bool) {
	if rs.done {
		return nil, false
	}
	if rs.plain {
		segments := withoutEmpty(appendSplit(dst, rs.escaped))
		rs.done = true
		if rs.afterHost != "" {
			rs.readAfterHost()
		}
		return segments, true
	}
	segments := rs.current.appendSegments(dst, rs.escaped)
	rs.advance()
	switch {
	case !rs.done:
	case rs.unescaped != "":
		rs.readAgain()
	case rs.afterHost != "":
		rs.readAfterHost()
	}
	return segments, true
}

// readAfterHost continues with the readings of the part of the path after //name.
func (rs *readings) readAfterHost() {
	after := readingsOfText(rs.afterHost, spelling.Unescape(rs.afterHost))
	after.keepsDots = rs.keepsDots
	*rs = after
}

// readAgain continues with the readings that undo escapes twice. First come readings that undo them twice in each
// segment. Then come readings that undo them once before everything else.
func (rs *readings) readAgain() {
	unescaped := rs.unescaped
	twice := readingsOfText(unescaped, spelling.Unescape(unescaped))
	if !rs.current.twice {
		rs.current, rs.done = reading{twice: true}, false
		rs.features = rs.union(twice.features)
		return
	}
	twice.afterHost, twice.keepsDots = rs.afterHost, rs.keepsDots
	*rs = twice
}

// advance continues with the next reading that may differ from the readings before it.
func (rs *readings) advance() {
	r := &rs.current
	if r.dots++; rs.dotted && !rs.keepsDots && r.dots < dotsEnd {
		return
	}
	r.dots = dotsKept
	if r.parameters++; rs.semicolons && r.parameters < parametersEnd {
		return
	}
	r.parameters = parametersKept
	if r.backslash = rs.backslashes && !r.backslash; r.backslash {
		return
	}
	r.unescapeFirst = rs.slashes && !r.unescapeFirst
	rs.done = !r.unescapeFirst
}

// appendSegments appends the segments of a path in this reading to a slice. It leaves out empty segments.
func (r reading) appendSegments(dst []string, escaped string) []string {
	if r.backslash {
		escaped = backslashes.Replace(escaped)
	}
	segments := appendSplit(dst, escaped)
	if r.parameters != parametersKept {
		cutParameters(segments)
	}
	switch r.dots {
	case dotsSent:
		segments = resolve(segments)
	case dotsSentMerged:
		segments = resolve(withoutEmpty(segments))
	case dotsKept, dotsAlways, dotsAlwaysMerged:
	}
	if r.unescapeFirst {
		segments = appendSplit(segments[:0], r.unescape(strings.Join(segments, "/")))
	} else {
		for i := range segments {
			segments[i] = r.unescape(segments[i])
		}
	}
	if r.parameters == parametersCutAlways {
		cutParameters(segments)
	}
	switch r.dots {
	case dotsAlways:
		segments = resolve(segments)
	case dotsAlwaysMerged:
		segments = resolve(withoutEmpty(segments))
	case dotsKept, dotsSent, dotsSentMerged:
	}
	return withoutEmpty(segments)
}

var backslashes = strings.NewReplacer(`\`, "/", "%5c", "/", "%5C", "/")

func (r reading) unescape(s string) string {
	if s = spelling.Unescape(s); r.twice {
		return spelling.Unescape(s)
	}
	return s
}

func appendSplit(dst []string, s string) []string {
	for {
		segment, rest, more := strings.Cut(s, "/")
		dst = append(dst, segment)
		if !more {
			return dst
		}
		s = rest
	}
}

func cutParameters(segments []string) {
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
}

// withoutEmpty removes empty segments, in place.
func withoutEmpty(segments []string) []string {
	kept := segments[:0]
	for _, s := range segments {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// resolve removes dot segments from the slice, without a copy. It removes .. together with the segment before it.
func resolve(segments []string) []string {
	kept := segments[:0]
	for _, s := range segments {
		switch s {
		case ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, s)
		}
	}
	return kept
}

// endMarkers has the characters at which a path without escapes ends for some servers.
const endMarkers = "\x00?#"

// hasOneEnd reports whether a path without escapes ends at the same place for all servers.
func hasOneEnd(path string) bool {
	for i := range len(path) { // faster for short segments than strings.ContainsAny
		if c := path[i]; c == 0 || c == '?' || c == '#' {
			return false
		}
	}
	return true
}

// cutAtEnd returns the segments up to the place where some servers end the path. If there is no such place, it returns
// nil. For programs in C, the path ends at a zero byte. For programs that undo escapes and then parse a URL, it ends at
// a question mark or a number sign.
func cutAtEnd(segments []string) []string {
	for i, segment := range segments {
		at := strings.IndexAny(segment, endMarkers)
		if at < 0 {
			continue
		}
		end := append(make([]string, 0, i+1), segments[:i]...)
		if at > 0 {
			end = append(end, segment[:at])
		}
		return end
	}
	return nil
}
