package accesslog

import "time"

// Entry is one request as the server logged it. Its byte slices are valid until the next entry is read. What a server
// escapes for the log, such as quotes, is undone: they are the bytes that the client sent.
type Entry struct {
	// Client is the address of the client without its port, or its name where the server looks names up: printable
	// ASCII, so it can be shown on a terminal. It is never empty.
	Client []byte
	// Time is when the request was received, where the log has that, or else when it was logged. It lies in the years
	// 1970 to 2261, for which time.Time.UnixNano is defined.
	Time time.Time
	// Method, Target and Proto are those of the request line. Target is a path with its query, a URL, or *. All three
	// are empty if what was logged is no HTTP request, which a server answers before any limit.
	Method, Target, Proto []byte
	Host                  []byte // for which the request was, perhaps with a port; empty where the log does not have it
	Status                int    // HTTP status; 0 where there was no answer
	Size                  int64  // bytes of the answer; 0 where the log has none
	// Headers are the header fields of the request that the log has. Several of one name are in their order.
	Headers []Header
	// Late is by how much an entry before it in its file has a later time: 0 for one that came in order.
	Late time.Duration
	// Memo is for who reads the log: what it has found out about the entry when it was shown it by [Log.Logged] or
	// returned by Next, whichever came first.
	Memo any

	line int // of the file
	file int // in the order given
}

// texts are those of the entry, but for the header fields.
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
