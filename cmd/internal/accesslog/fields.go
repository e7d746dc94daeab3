package accesslog

import "slices"

// Fields says which fields a log has for each request, besides client, time, method, target and status. It
// distinguishes a header field that was not logged from a field that was not sent. The format determines the fields. If
// they are configurable, the first lines show them.
type Fields struct {
	Host    bool     // the host of the request
	headers []string // header fields in the log, canonical and sorted; if all is set, the fields not in the log
	all     bool
}

// Header reports whether the log has the header field with this canonical name. If so, a request without it did not
// have the field.
func (f Fields) Header(name string) bool {
	_, listed := slices.BinarySearch(f.headers, name)
	return listed != f.all
}

func (f Fields) and(g Fields) Fields {
	both := Fields{Host: f.Host && g.Host, all: f.all && g.all}
	switch {
	case both.all:
		both.headers = append(slices.Clone(f.headers), g.headers...)
	case f.all:
		both.headers = only(g.headers, f)
	default:
		both.headers = only(f.headers, g)
	}
	slices.Sort(both.headers)
	both.headers = slices.Compact(both.headers)
	return both
}

// The function only returns the names for which f has a header field.
func only(names []string, f Fields) (held []string) {
	for _, name := range names {
		if f.Header(name) {
			held = append(held, name)
		}
	}
	return held
}
