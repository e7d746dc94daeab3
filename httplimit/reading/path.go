package reading

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Path is a pattern of paths, in the syntax of [net/http.ServeMux]:
//
//	/login            exactly this path
//	/static/          all paths that begin with it
//	/users/{id}       {id} stands for any one segment
//	/files/{rest...}  {rest...} stands for all segments that follow
//	/{$}              only the root
//
// [ParsePath] makes a Path; the zero Path means the root. [ParsePrefix] and [ParseRegexp] make text patterns.
//
// For a limit ([Match.Meets]), the pattern is compared with every reading of a path. A slash at the end then does not
// matter. For a route ([Match.Matches]), it is compared with the path without escapes, double slashes and dots. A slash
// at the end then matters.
type Path struct {
	text     string
	segments []string // anySegment stands for any segment
	subtree  bool     // any segments may follow
	slash    bool     // the pattern ends with a slash, but not subtree
	literal  string   // the only path of the pattern, without a slash at the end; "" if the pattern stands for several

	prefix, foldedPrefix string         // from [ParsePrefix], instead of the fields above: as written, and folded
	expression, folded   *regexp.Regexp // from [ParseRegexp], likewise
}

// anySegment stands for {name} in a pattern. No segment equals it, because segments have no slash.
const anySegment = "/"

// String returns the pattern as it was written. A text pattern comes after the word "prefix" or "regex".
func (p Path) String() string { return p.text }

// ParsePath parses a pattern. It must begin with a slash, and must not have a *, an escape, a query, an empty segment
// or a dot segment. Braces must enclose a complete segment. Otherwise ParsePath returns an error.
func ParsePath(text string) (Path, error) {
	p := Path{text: text}
	switch plain, err := url.PathUnescape(text); {
	case !strings.HasPrefix(text, "/") && strings.Contains(text, " /"):
		return p, errors.New("a pattern begins with a slash and has no method")
	case !strings.HasPrefix(text, "/"):
		return p, errors.New("a pattern begins with a slash")
	case strings.ContainsAny(text, "?#"):
		return p, errors.New("a query or fragment is not part of the path")
	case strings.Contains(text, "*"):
		return p, errors.New(`patterns have no *: write "/users/{id}" for one segment, "/static/" for all paths that begin with it`)
	case err != nil || plain != text:
		return p, errors.New("write it without escapes: they are undone before paths are compared")
	}
	names := strings.Split(text[1:], "/")
	last := len(names) - 1
	seen := map[string]bool{}
	for i, name := range names {
		switch {
		case name == "" && i == last:
			p.subtree = true
		case name == "" || name == "." || name == "..":
			return p, errors.New("empty segments, . and .. are removed before paths are compared, so this would " +
				"match nothing")
		case name == "{$}" && i == last:
			p.slash = true
		case !strings.ContainsAny(name, "{}"):
			p.segments = append(p.segments, name)
		default:
			variable, multi, err := wildcard(name)
			switch {
			case err != nil:
				return p, err
			case seen[variable]:
				return p, fmt.Errorf("the name %q occurs twice", variable)
			case multi && i != last:
				return p, fmt.Errorf("%s is not at the end", name)
			case multi:
				p.subtree = true
			default:
				p.segments = append(p.segments, anySegment)
			}
			seen[variable] = true
		}
	}
	if !p.subtree && !slices.Contains(p.segments, anySegment) {
		p.literal = "/" + strings.Join(p.segments, "/")
	}
	return p, nil
}

// wildcard parses a segment of the form {name} or {name...}.
func wildcard(segment string) (name string, multi bool, err error) {
	name, ok := strings.CutPrefix(segment, "{")
	if ok {
		name, ok = strings.CutSuffix(name, "}")
	}
	name, multi = strings.CutSuffix(name, "...")
	if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		return "", false, fmt.Errorf("%s: want a whole segment of the form {name}, {name...} or, at the end, {$}",
			segment)
	}
	return name, multi, nil
}

// meets reports whether a pattern other than a text pattern matches segments. No segment may be empty. The last segment
// may have an extension, because many frameworks treat /login.json as /login. If the pattern ends in a file, more
// segments may follow, because CGI and PHP treat /login.php/x as /login.php.
func (p *Path) meets(segments []string, m *Match) bool {
	last := len(p.segments) - 1
	if len(segments) <= last || len(segments) > last+1 && !p.subtree && !p.isFile() {
		return false
	}
	for i, want := range p.segments {
		switch got := segments[i]; {
		case want == anySegment, sameSegment(want, got, m.KeepCase):
		case i == last && i == len(segments)-1 && !m.KeepType && hasExtension(got, want, m.KeepCase):
		default:
			return false
		}
	}
	return true
}

// keyPart is for patterns that end in a name and stand for several paths. It returns the part of a [KeyPath] that the
// pattern describes. It removes what a client may add: an extension, and everything after a file. If the key does not
// meet the pattern, ok is false. keyPart does not allocate for keys of up to 32 segments.
func (p *Path) keyPart(key string, m *Match) (part string, ok bool) {
	last := len(p.segments) - 1
	if p.literal != "" || p.subtree || last < 0 || p.segments[last] == anySegment {
		return "", false
	}
	var buffer [32]string
	segments := buffer[:0]
	for rest, more := key, true; more && len(segments) < len(p.segments)+2; { // the last segment is the rest of the key
		var segment string
		if segment, rest, more = strings.Cut(rest, "/"); segment != "" {
			segments = append(segments, segment)
		}
	}
	if !p.meets(segments, m) {
		return "", false
	}
	end := 0
	for _, segment := range segments[:last] {
		end += len("/") + len(segment)
	}
	end += len("/")
	if want := p.segments[last]; len(segments) == last+1 && hasExtension(segments[last], want, m.KeepCase) && !m.KeepType {
		return key[:end+len(want)], true
	}
	return key[:end+len(segments[last])], true
}

// isFile reports whether the last segment of the pattern is a name with an extension.
func (p *Path) isFile() bool {
	return len(p.segments) > 0 && strings.LastIndexByte(p.segments[len(p.segments)-1], '.') > 0
}

// hasExtension reports whether the segment got is the segment want followed by an extension.
func hasExtension(got, want string, keepCase bool) bool {
	return len(got) > len(want) && got[len(want)] == '.' && sameSegment(want, got[:len(want)], keepCase)
}

// sameSegment reports whether a server may treat two segments as the same.
func sameSegment(want, got string, keepCase bool) bool {
	if want == got {
		return true
	}
	want, got = trimSegment(want), trimSegment(got)
	return want == got || !keepCase && strings.EqualFold(want, got)
}

// On Windows, a file has streams. streamPrefix is the beginning of the name of a stream.
const streamPrefix = "::$"

// trimSegment removes what some servers ignore at the end of a segment. Windows ignores dots, blanks and "::$DATA" (the
// stream of a file's data). Programs in C ignore everything after a zero byte.
func trimSegment(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	if i := strings.Index(s, streamPrefix); i >= 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, ignoredAtEnd)
}

// ignoredAtEnd has the characters that some servers ignore at the end of a segment.
const ignoredAtEnd = ". \t\n\v\f\r"

// cleanPath removes double slashes, dot segments and a slash at the end from a path.
func cleanPath(text string) string {
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	return path.Clean(text) // does not allocate if there is nothing to clean
}

// Matches reports whether the pattern matches a path without escapes, such as [net/url.URL.Path].
func (p *Path) Matches(urlPath string) bool { return p.matchesClean(urlPath, cleanPath(urlPath)) }

// matchesClean does the same as Matches. The parameter clean is the result of [cleanPath] for the path.
func (p *Path) matchesClean(urlPath, clean string) bool {
	slash := strings.HasSuffix(urlPath, "/") || strings.HasSuffix(urlPath, "/.") || strings.HasSuffix(urlPath, "/..") || clean == "/"
	if p.IsText() {
		if slash && clean != "/" {
			clean += "/"
		}
		return p.textMatches(clean)
	}
	rest := clean[1:]
	for _, want := range p.segments {
		segment, after, _ := strings.Cut(rest, "/")
		if segment == "" || want != anySegment && want != segment {
			return false
		}
		rest = after
	}
	switch {
	case p.subtree:
		return rest != "" || slash
	case p.slash:
		return rest == "" && slash
	}
	return rest == "" && (!slash || clean == "/" && len(p.segments) == 0)
}
