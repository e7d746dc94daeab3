package serve

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/httplimit/reading"
)

// fieldsRead lists what the rules of a file read from a request. If a request has several values of a field, the rules
// use only one of them.
type fieldsRead struct {
	headers []string // canonical names
	cookies []string
	query   []string
	host    bool
	path    bool
}

func newFieldsRead(f *rulefile.File, compiled []*rules.Rule) fieldsRead {
	fields := fieldsRead{path: f.AmbiguousPaths == rulefile.AmbiguousRefuse}
	for _, s := range rules.ExemptReads(f) {
		fields.host = fields.host || s.Kind == rulefile.SourceHost
	}
	for _, rule := range compiled {
		sources := rule.Reads()
		for _, s := range sources.Match {
			fields.host = fields.host || s.Kind == rulefile.SourceHost // a match reads all values of a header
		}
		for _, s := range slices.Concat(sources.Key, sources.Tier, sources.Cost) {
			fields.add(s)
		}
	}
	return fields
}

func (fields *fieldsRead) add(s rulefile.Source) {
	switch s.Kind {
	case rulefile.SourceHost:
		fields.host = true
	case rulefile.SourceHeader:
		if !slices.Contains(fields.headers, s.Name) {
			fields.headers = append(fields.headers, s.Name)
		}
	case rulefile.SourceCookie:
		if !slices.Contains(fields.cookies, s.Name) {
			fields.cookies = append(fields.cookies, s.Name)
		}
	case rulefile.SourceQuery:
		if !slices.Contains(fields.query, s.Name) {
			fields.query = append(fields.query, s.Name)
		}
	case rulefile.SourceIP, rulefile.SourcePath, rulefile.SourceMethod, rulefile.SourceGlobal, rulefile.SourceNone:
	}
}

// check returns an error if a request has two different values of a field that the rules read. The upstream might use
// another of these values than the rules. So a client could choose its bucket with one value, and identify itself to
// the upstream with the other.
//
// check also refuses a request that would take too long to read. If the file says so, it refuses a path that servers
// read in different ways.
func (fields *fieldsRead) check(r *http.Request) error {
	if part := reading.TooLong(r); part != "" {
		return fmt.Errorf("%s would take too long to read in all ways in which servers do", part)
	}
	if fields.path {
		if reason := reading.Ambiguity(r.URL); reason != "" {
			return fmt.Errorf("servers read its path in several ways, because of %s", reason)
		}
	}
	for _, name := range fields.headers {
		if _, ok := httplimit.HeaderValue(r, name); !ok {
			return fmt.Errorf("the header %s occurs twice, with different values", name)
		}
	}
	for _, name := range fields.cookies {
		if _, ok := httplimit.CookieValue(r, name); !ok {
			return fmt.Errorf("the cookie %s occurs twice, with different values, or its value has a zero byte, or a "+
				"comma or a blank outside of quotes", name)
		}
	}
	for _, name := range fields.query {
		if _, ok := reading.QueryKey(r, name); !ok {
			return fmt.Errorf("the query parameter %s occurs twice, with different values, or its value has a zero byte",
				name)
		}
	}
	return nil
}
