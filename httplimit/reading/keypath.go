package reading

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// KeyPath returns the path that selects a bucket of the match's rule. If the request meets a pattern that stands for
// one path only, KeyPath returns that path, whatever the spelling. Otherwise it returns the result of the function
// [KeyPath], without any text that a client may add after the last name of a pattern.
func (m *Match) KeyPath(r *http.Request) string {
	for i := range m.Paths {
		if p := &m.Paths[i]; p.literal != "" && m.meetsPaths(m.Paths[i:i+1], r) {
			return p.literal
		}
	}
	key := parsedOf(r).keyPath(r.URL, m.KeepCase)
	for i := range m.Paths {
		if part, ok := m.Paths[i].keyPart(key, m); ok {
			return part
		}
	}
	return key
}

// KeyPath returns the path that selects a bucket. The path has no escapes, parameters, double slashes, dot segments or
// slash at the end. It is in lower case unless keepCase is set. KeyPath does not allocate for a path that is already in
// this form.
//
// If the readings of a path have different keys, the path gets one key that all such paths share. So all spellings that
// a server treats as one path have at most two keys. A client cannot make up more.
func KeyPath(u *url.URL, keepCase bool) string { return keyPath(u, keepCase, sharedKey) }

// keyPath does the same as KeyPath, but calls keyOf instead of [sharedKey].
func keyPath(u *url.URL, keepCase bool, keyOf func(*url.URL) (string, bool)) string {
	path := u.Path
	if u.Opaque != "" {
		return ambiguousKey
	}
	if escaped := u.EscapedPath(); !isPlain(escaped) {
		var ok bool
		if path, ok = keyOf(u); !ok {
			return ambiguousKey
		}
	}
	path = strings.TrimSuffix(path, "/")
	if !keepCase {
		path = fold(path)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// fold returns a text in which all letters have one canonical form. Lower case would not be enough, because some
// letters have two lower-case forms, such as s and the long s. fold does not allocate for lower-case ASCII letters.
func fold(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		s = strings.ToUpper(s)
	}
	return strings.ToLower(s)
}

// ambiguousKey is the key of all paths whose readings have different keys. It has no slash, so it is never a path.
const ambiguousKey = "ambiguous"

// sharedKey returns the key that all readings of a path share. If they have different keys, or if the path is not read,
// ok is false.
func sharedKey(u *url.URL) (key string, ok bool) {
	rs := readingsOf(u)
	if rs.tooLong() {
		return "", false
	}
	var common commonKey
	for segments, more := rs.next(nil); more; segments, more = rs.next(nil) {
		if !common.add(segments) {
			return "", false
		}
	}
	return common.key(), true
}

// A commonKey is the key that all added readings of a path have in common.
type commonKey struct {
	segments []string
	set      bool     // a reading was added
	spare    []string // for the key of the next reading
}

// add adds a reading. It returns false if the key of the reading differs from the common key. It also returns false if
// servers differ in where the path ends.
func (k *commonKey) add(segments []string) bool {
	candidate := appendCoarse(k.spare[:0], segments)
	if k.set && !slices.Equal(candidate, k.segments) {
		return false
	}
	for _, s := range segments {
		if !isOrdinary(s) && !hasOneEnd(s) {
			return false
		}
	}
	k.segments, k.set, k.spare = candidate, true, k.segments
	return true
}

// key returns the key of the readings.
func (k *commonKey) key() string { return strings.Join(k.segments, "/") }

// appendCoarse appends the segments of a reading to a slice. It leaves out everything that other readings might remove,
// such as parameters and dots.
func appendCoarse(dst, segments []string) []string {
	if slices.ContainsFunc(segments, func(s string) bool { return !isOrdinary(s) && strings.ContainsAny(s, `/\`) }) {
		segments = appendSplit(nil, strings.ReplaceAll(strings.Join(segments, "/"), `\`, "/"))
	}
	segments = append(dst, segments...)
	for i, s := range segments {
		if isOrdinary(s) {
			continue
		}
		s, _, _ = strings.Cut(s, ";")
		if s != "." && s != ".." {
			s = trimSegment(s)
		}
		segments[i] = s
	}
	return resolve(withoutEmpty(segments))
}

// isOrdinary is a quick test, which is true for most segments of most paths. It reports whether every server reads a
// segment without escapes as it is written. Such a segment has no character that ends a name, and no last character
// that some servers ignore.
func isOrdinary(s string) bool {
	for i := range len(s) {
		if isSpecial[s[i]] {
			return false
		}
	}
	return s == "" || !isIgnoredAtEnd[s[len(s)-1]]
}

var isSpecial, isIgnoredAtEnd = bytesOf("\x00:;/\\?#"), bytesOf(ignoredAtEnd)

func bytesOf(s string) (set [256]bool) {
	for i := range len(s) {
		set[s[i]] = true
	}
	return set
}
