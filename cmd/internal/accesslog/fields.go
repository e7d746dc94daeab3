package accesslog

import "slices"

// Fields says which fields a log has for each request. Every log has the client, the time, the method, the target and
// the status, so they are not listed. If a request has no value of a header in the log, Fields shows whether the client
// did not send the header or the server does not log it.
//
// The format determines the fields. If the fields of a format are configured, they are found in the first lines of the
// log.
type Fields struct {
	Host    bool     // the host of the request
	headers []string // header fields in the log, canonical and sorted; if all is set, the fields not in the log
	all     bool
}

// Header reports whether the log has the header field with that canonical name, for each request that had it.
func (f Fields) Header(name string) bool {
	_, listed := slices.BinarySearch(f.headers, name)
	return listed != f.all
}

// f.and(g) returns the fields that are in f and also in g.
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

// only(names, f) returns the names for which f has a header field.
func only(names []string, f Fields) (held []string) {
	for _, name := range names {
		if f.Header(name) {
			held = append(held, name)
		}
	}
	return held
}
