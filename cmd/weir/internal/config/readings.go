package config

import (
	"net/url"
	"strings"
)

// Servers read one path in several ways. They undo escapes before or after they split it, take ";x" off a segment or
// leave it, resolve dots or keep them, and take a backslash for a slash or not. A limit that goes by one reading is no
// limit in front of a server that goes by another. So a pattern is held against every reading.

// A reading is one way to read a path. The zero reading splits the path, undoes the escapes in each segment, and keeps
// everything else as it is.
type reading struct {
	unescapeFirst bool // escapes are undone before the path is split: %2f is a slash
	backslash     bool // a backslash is a slash
	parameters    parameters
	dots          dots
}

// parameters says what becomes of a semicolon in a segment and of what follows it.
type parameters uint8

const (
	parametersKept parameters = iota
	parametersCut             // they are taken off before escapes are undone: %3b is no semicolon
	parametersCutAlways
	parametersEnd
)

// dots says what becomes of the segments . and ..
type dots uint8

const (
	dotsKept         dots = iota // they are names like others
	dotsSent                     // those that are sent without escapes are resolved; .. also takes an empty segment
	dotsSentMerged               // the same, when empty segments have been taken out
	dotsAlways                   // all are resolved
	dotsAlwaysMerged             // the same, when empty segments have been taken out
	dotsEnd
)

// maxRead is the longest path, in bytes, of which every reading is made. No program sends a longer one that is not
// plain.
const maxRead = 4 << 10

// readings are the readings of a path, one after the other.
type readings struct {
	escaped string
	plain   bool // all are the same
	present reading
	done    bool

	slashes, backslashes, semicolons bool // there are escaped slashes; there are any
}

func readingsOf(u *url.URL) readings {
	escaped := u.EscapedPath()
	return readings{
		escaped:     strings.TrimPrefix(escaped, "/"),
		plain:       isPlain(escaped),
		slashes:     strings.Count(u.Path, "/") != strings.Count(escaped, "/"),
		backslashes: strings.Contains(u.Path, `\`),
		semicolons:  strings.Contains(u.Path, ";"),
	}
}

// isPlain reports whether every server reads an escaped path in the same way: it has no escapes, semicolons,
// backslashes and dots as segments, and no empty segments but at the end.
func isPlain(escaped string) bool {
	return !strings.ContainsAny(escaped, `%;\`) && !strings.Contains(escaped, "//") && !strings.Contains(escaped, "/.")
}

// tooLong reports whether the path is not read in every way because it is too long.
func (rs *readings) tooLong() bool { return !rs.plain && len(rs.escaped) > maxRead }

// next appends the segments of the next reading, without empty ones, to into; false after the last one.
func (rs *readings) next(into []string) ([]string, bool) {
	if rs.done {
		return nil, false
	}
	if rs.plain {
		rs.done = true
		return withoutEmpty(appendSplit(into, rs.escaped)), true
	}
	segments := rs.present.of(into, rs.escaped)
	rs.advance()
	return segments, true
}

// advance goes on to the next reading that may differ.
func (rs *readings) advance() {
	r := &rs.present
	if r.dots++; r.dots < dotsEnd {
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

// of appends the segments of a path to into as the reading has them, without empty ones.
func (r reading) of(into []string, escaped string) []string {
	if r.backslash {
		escaped = backslashes.Replace(escaped)
	}
	segments := appendSplit(into, escaped)
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
		segments = appendSplit(segments[:0], unescape(strings.Join(segments, "/")))
	} else {
		for i := range segments {
			segments[i] = unescape(segments[i])
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

// unescape undoes the escapes. What is none stays: net/url has read the path.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

func appendSplit(into []string, s string) []string {
	for {
		segment, rest, more := strings.Cut(s, "/")
		into = append(into, segment)
		if !more {
			return into
		}
		s = rest
	}
}

func cutParameters(segments []string) {
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
}

// withoutEmpty takes the empty segments out, in place.
func withoutEmpty(segments []string) []string {
	kept := segments[:0]
	for _, s := range segments {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// resolve takes dots out, in place: .. with the segment before it.
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

// KeyPath returns the path that a bucket is chosen by: without escapes, parameters, double slashes, dots and a slash at
// the end, and in lower case unless that is kept. It does not allocate for what is written so.
//
// All paths of which that depends on the reading have one key together, [ambiguousKey]. So whatever reading a server
// has, what it takes for one path has two keys at most, and a client cannot make up more.
func KeyPath(u *url.URL, keepCase bool) string {
	path := u.Path
	if u.Opaque != "" {
		return ambiguousKey
	}
	if escaped := u.EscapedPath(); !isPlain(escaped) {
		var ok bool
		if path, ok = oneKey(u); !ok {
			return ambiguousKey
		}
	}
	path = strings.TrimSuffix(path, "/")
	if !keepCase {
		path = strings.ToLower(path)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// ambiguousKey is the key of the paths that have several. It is none, as it has no slash.
const ambiguousKey = "ambiguous"

// oneKey returns what all readings of a path come to; false if they come to several or are not made.
func oneKey(u *url.URL) (key string, ok bool) {
	all := readingsOf(u)
	if all.tooLong() {
		return "", false
	}
	for segments, more := all.next(nil); more; segments, more = all.next(nil) {
		this := coarsest(segments)
		if ok && this != key {
			return "", false
		}
		key, ok = this, true
	}
	return key, ok
}

// coarsest returns the path of segments of any reading, with all that another reading might do done to it.
func coarsest(segments []string) string {
	segments = appendSplit(nil, strings.ReplaceAll(strings.Join(segments, "/"), `\`, "/"))
	cutParameters(segments)
	return strings.Join(resolve(withoutEmpty(segments)), "/")
}
