package accesslog

import "time"

// Entry is one request as the server logged it. Its byte slices are valid until the next entry is read. Escapes of the
// server are undone, so the slices have the bytes that the client sent.
type Entry struct {
	// Client is the client's address without port, or its name if the server looks names up. It is printable ASCII, and
	// never empty.
	Client []byte
	// Time is when the request was received. If the log does not have this time, it is when the request was logged. The
	// year is from 1970 to 2261: time.Time.UnixNano is defined for these years.
	Time time.Time
	// Method, Target and Proto are the parts of the request line. Target is a path with its query, a URL, or *. All are
	// empty for a request that was not HTTP. No limit applies to such a request, because the server answers it before
	// any limit.
	Method, Target, Proto []byte
	Host                  []byte // the requested host, perhaps with a port; empty if the log does not have it
	Status                int    // HTTP status; 0 if there was no answer
	Size                  int64  // bytes of the answer; 0 if the log does not have them
	// Headers are the request's header fields in the log. Several fields with the same name keep their order.
	Headers []Header
	// Late compares the entry with the entries in earlier lines of its file. It is how far their latest time is after
	// this entry's time. It is 0 for an entry in order.
	Late time.Duration
	// Memo is for the reader of the log, to store something in an entry. The reader can get an entry twice: from Next
	// and from the function of [Log.OnEntry]. What it stores the first time, it finds the second time.
	Memo any

	line int // number of the line in its file
	file int // index of the file, in the given order
}

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
