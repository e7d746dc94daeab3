package accesslog

import "time"

// Entry is one request as the server logged it. Its byte slices are valid until the next entry is read. A server writes
// some bytes, such as quotes, as escapes. The escapes are undone: the slices have the bytes that the client sent.
type Entry struct {
	// Client is the address of the client without its port, or its name if the server looks names up. It is printable
	// ASCII, so it can be shown on a terminal. It is never empty.
	Client []byte
	// Time is the time at which the request was received, if the log has this time. Otherwise it is the time at which
	// the request was logged. The year is from 1970 to 2261, because time.Time.UnixNano is defined for these years.
	Time time.Time
	// Method, Target and Proto are the parts of the request line. Target is a path with its query, a URL, or *. All
	// three are empty if the logged request was not HTTP. No limit applies to such a request, because the server
	// answers it before any limit.
	Method, Target, Proto []byte
	Host                  []byte // the requested host, perhaps with a port; empty if the log does not have it
	Status                int    // HTTP status; 0 if there was no answer
	Size                  int64  // bytes of the answer; 0 if the log does not have them
	// Headers are the request's header fields in the log. Several fields with the same name keep their order.
	Headers []Header
	// Late is 0 if the entry came in order. Otherwise an entry before it in its file has a later time, and Late is the
	// difference of the two times.
	Late time.Duration
	// Memo is for the reader of the log. A reader can get an entry twice: from the function of [Log.Logged] and from
	// Next. When the reader gets the entry for the first time, it can store in Memo what it has found out about the
	// entry.
	Memo any

	line int // number of the line in its file
	file int // index of the file, in the given order
}

// texts returns the texts of the entry, except the header fields.
func (e *Entry) texts() [5]*[]byte {
	return [...]*[]byte{&e.Client, &e.Method, &e.Target, &e.Proto, &e.Host}
}

// Header is one header field of a request.
type Header struct {
	Name  string // in its canonical form, such as User-Agent
	Value []byte
}

// IsHTTP reports whether an HTTP request was logged.
func (e *Entry) IsHTTP() bool { return len(e.Method) > 0 }
