package accesslog

import "slices"

// Fields says which fields a log has for each request, besides client, time, method, target and status. It
// distinguishes a header field that was not logged from a field that was not sent. The format determines the fields. If
// they are configurable, the first lines show them.
type Fields struct {
	Host       bool     // the host of the request
	headers    []string // header fields in the log, canonical and sorted; with allHeaders, the fields not in the log
	allHeaders bool
}

// Header reports whether the log has the header field with this canonical name. If so, a request without it did not
// have the field.
func (f Fields) Header(name string) bool {
	_, listed := slices.BinarySearch(f.headers, name)
	return listed != f.allHeaders
}

func (f Fields) intersect(g Fields) Fields {
	result := Fields{Host: f.Host && g.Host, allHeaders: f.allHeaders && g.allHeaders}
	switch {
	case result.allHeaders:
		result.headers = append(slices.Clone(f.headers), g.headers...)
	case f.allHeaders:
		result.headers = namesIn(g.headers, f)
	default:
		result.headers = namesIn(f.headers, g)
	}
	slices.Sort(result.headers)
	result.headers = slices.Compact(result.headers)
	return result
}

// namesIn returns the names for which f has a header field.
func namesIn(names []string, f Fields) (found []string) {
	for _, name := range names {
		if f.Header(name) {
			found = append(found, name)
		}
	}
	return found
}
