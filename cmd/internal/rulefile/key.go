package rulefile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// A Key identifies a bucket by the values of its parts. It has at least one part.
type Key []KeyPart

// A KeyPart is a list of sources of a value. The first source that a request has is used. The last source is
// SourceNone, or a source that every request has.
type KeyPart []Source

// A Source is a property of a request in a key.
type Source struct {
	Kind SourceKind
	Name string // canonical name of a header, or name of a cookie or a query parameter
}

type SourceKind string

// A request may lack the header, the cookie or the query parameter that a Source names. It has a value for every other
// kind of Source.
const (
	SourceIP     SourceKind = "ip" // the client's address, as ClientIP finds it
	SourceHeader SourceKind = "header"
	SourceCookie SourceKind = "cookie"
	SourceQuery  SourceKind = "query"
	SourcePath   SourceKind = "path" // cleaned, without the query
	SourceMethod SourceKind = "method"
	SourceHost   SourceKind = "host"   // in lower case, without the port
	SourceGlobal SourceKind = "global" // one bucket for all requests
	SourceNone   SourceKind = "none"   // the rule does not count this request
)

var sourceWords = []string{"ip", "header:NAME", "cookie:NAME", "query:NAME", "path", "method", "host", "global"}

// String returns the source as in a file.
func (s Source) String() string {
	if s.Name == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + ":" + s.Name
}

// String returns the part as it is written in a file. It includes sources that the file implies.
func (p KeyPart) String() string {
	words := make([]string, len(p))
	for i, s := range p {
		words[i] = s.String()
	}
	return strings.Join(words, " or ")
}

// String returns the key as in a file.
func (k Key) String() string {
	words := make([]string, len(k))
	for i, p := range k {
		words[i] = p.String()
	}
	return strings.Join(words, ", ")
}

// Uses reports whether the key has a source of a kind.
func (k Key) Uses(kind SourceKind) bool {
	return slices.ContainsFunc(k, func(p KeyPart) bool {
		return slices.ContainsFunc(p, func(s Source) bool { return s.Kind == kind })
	})
}

// Equal reports whether two keys distinguish the same requests.
func (k Key) Equal(other Key) bool {
	return slices.EqualFunc(k, other, func(a, b KeyPart) bool { return slices.Equal(a, b) })
}

var keyPart = scalar(pattern("", "^ *(ip|path|method|host|global|(header|cookie|query):.+) *( or .*)?$"), (*decoder).keyPart)

// keyPart parses "A or B or C". If a header, cookie or query parameter has no alternative, keyPart adds the client's
// address. Otherwise a client could avoid the limit by leaving out the header, cookie or parameter.
func (d *decoder) keyPart(n *yaml.Node, _, text string) (part KeyPart) {
	if i := strings.Index(strings.ToLower(text), " or "); i >= 0 && text[i:i+4] != " or " {
		d.Fail(n, "key: %s: write %s, in small letters", yamlfile.Quote(text), yamlfile.Quote(text[:i]+" or "+text[i+4:]))
		return nil
	}
	words := strings.Split(text, " or ")
	for i, word := range words {
		s, ok := d.source(n, strings.TrimSpace(word))
		if !ok {
			return nil
		}
		canBeMissing := s.Kind == SourceHeader || s.Kind == SourceCookie || s.Kind == SourceQuery
		switch {
		case s.Kind == SourceNone && i == 0:
			d.Fail(n, "key: none is an alternative to a header or cookie: write for example header:X-API-Key or none")
			return nil
		case !canBeMissing && i < len(words)-1:
			d.Fail(n, "key: %s: every request has %s, so the alternative after it is never used", yamlfile.Quote(text), s)
			return nil
		}
		part = append(part, s)
		if canBeMissing && i == len(words)-1 {
			part = append(part, Source{Kind: SourceIP})
		}
	}
	return part
}

func (d *decoder) source(n *yaml.Node, word string) (s Source, ok bool) {
	switch kind := SourceKind(word); kind {
	case SourceIP, SourcePath, SourceMethod, SourceHost, SourceGlobal, SourceNone:
		return Source{Kind: kind}, true
	}
	if name, ok := d.headerReference(n, word); ok || name != "" {
		return Source{SourceHeader, name}, ok
	}
	if name, ok := strings.CutPrefix(word, "cookie:"); ok {
		if !httpguts.ValidHeaderFieldName(name) { // the name of a cookie may have the characters of a header's name
			d.Fail(n, "key: %s is not the name of a cookie", yamlfile.Quote(name))
			return s, false
		}
		return Source{SourceCookie, name}, true
	}
	if name, ok := strings.CutPrefix(word, "query:"); ok {
		if name == "" {
			d.Fail(n, "key: query: wants the name of a parameter after it")
		}
		return Source{SourceQuery, name}, name != ""
	}
	kind, name, hasName := strings.Cut(word, ":")
	if suggestion := nearest(kind, []string{"header", "cookie", "query"}); hasName && suggestion != "" {
		d.Fail(n, "unknown key %s: did you mean %q?", yamlfile.Quote(word), suggestion+":"+name)
	} else {
		d.Fail(n, "unknown key %s%s", yamlfile.Quote(word), didYouMean(word, sourceWords))
	}
	return s, false
}
