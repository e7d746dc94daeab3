package accesslog

import (
	"slices"
	"time"
)

const (
	// These are the numbers of lines that the open files together hold back for sorting. A log that needs more is read
	// again with the next number. A log that needs more than the last number is sorted on disk.
	noLines, fewLines, manyLines = 0, 1 << 10, 16 << 10
	// orderBytes is how many bytes of text the open files together hold back.
	orderBytes = 4 << 20
)

// order sorts the entries of a file by time. A log is not in order if the server logs a request at its end with its
// start time, or rounds the time. order holds back as many lines as it may, and passes on the earliest. Log.Next
// detects a line that comes too late even for this.
type order struct {
	latest time.Time // latest time of the entries that were read
	queue  []place   // sorted by time; entries with the same time are in the order in which they came
	room   []place   // the memory of the queue
	logged []*kept   // entries that wait for their turn in the order of the file; empty without Log.Logged
	bytes  int       // bytes of text in the queue
	given  *kept     // the entry that next returned last
	free   []*kept
	end    error // the error that ended the reading, returned after the queue
}

// A place is an entry's place in the queue, with a copy of its time for a fast search.
type place struct {
	nanos int64
	*kept
}

// kept is an entry with its text, or the error of a line. An error stays directly after the entry with the latest time
// among the entries that were read before it.
type kept struct {
	entry Entry
	text  []byte
	wrong *LineError
	uses  int // how many more times the entry will be used
}

// next returns the next entry of the file, or the error of a line. The entry is valid until the following call of next.
func (o *order) next(f *file) (*Entry, error) {
	if f.log.window == noLines {
		return f.astray.next(f)
	}
	if o.given != nil {
		o.letGo(o.given)
		o.given = nil
	}
	files := max(len(f.log.active), 1)
	for o.end == nil && (len(o.queue) == 0 || len(o.queue) < f.log.window/files && o.bytes < orderBytes/files) {
		o.read(f)
	}
	if len(o.queue) == 0 {
		return nil, o.end
	}
	k := o.queue[0].kept
	o.queue = o.queue[1:]
	if k.wrong != nil {
		return nil, k.wrong
	}
	o.given = k
	o.bytes -= len(k.text)
	return &k.entry, nil
}

func (o *order) read(f *file) {
	e, err := f.astray.next(f)
	switch wrong := asLineError(err); {
	case wrong != nil:
		o.insert(&kept{entry: Entry{Time: o.latest}, wrong: wrong})
	case err != nil:
		o.end = err
	default:
		k := o.keep(e)
		if o.latest.IsZero() || !e.Time.Before(o.latest) {
			o.latest = e.Time
		} else {
			k.entry.Late = o.latest.Sub(e.Time)
		}
		k.entry.file, k.uses = f.index, 1
		if f.log.logged != nil {
			k.uses, o.logged = 2, append(o.logged, k)
		}
		o.insert(k)
	}
}

// nextLogged passes the next entry, in the order of the file, to the function show. It must be called once for each
// entry that next has returned.
func (o *order) nextLogged(show func(*Entry)) {
	k := o.logged[0]
	o.logged = o.logged[1:]
	show(&k.entry)
	o.letGo(k)
}

func (o *order) letGo(k *kept) {
	if k.uses--; k.uses == 0 {
		o.free = append(o.free, k)
	}
}

func (o *order) insert(k *kept) {
	o.bytes += len(k.text)
	p := place{k.entry.Time.UnixNano(), k}
	at := len(o.queue)
	if at > 0 && o.queue[at-1].nanos > p.nanos {
		at, _ = slices.BinarySearchFunc(o.queue, p.nanos, func(q place, nanos int64) int {
			if q.nanos > nanos {
				return 1
			}
			return -1 // behind entries with the same time
		})
	}
	if len(o.queue) == cap(o.queue) { // the queue has reached the end of its memory
		if len(o.room) < 2*len(o.queue)+2 {
			o.room = make([]place, 4*len(o.queue)+64)
		}
		o.queue = o.room[:copy(o.room, o.queue)]
	}
	o.queue = slices.Insert(o.queue, at, p)
}

// keep makes a kept that has a copy of the entry.
func (o *order) keep(e *Entry) *kept {
	var k *kept
	if n := len(o.free); n > 0 {
		k, o.free = o.free[n-1], o.free[:n-1]
	} else {
		k = new(kept)
	}
	n := len(e.Client) + len(e.Method) + len(e.Target) + len(e.Proto) + len(e.Host)
	for i := range e.Headers {
		n += len(e.Headers[i].Value)
	}
	headers := append(k.entry.Headers[:0], e.Headers...)
	k.entry, k.text = *e, slices.Grow(k.text[:0], n) // one allocation for all texts
	k.entry.Headers = headers
	for _, text := range k.entry.texts() {
		k.copy(text)
	}
	for i := range headers {
		k.copy(&headers[i].Value)
	}
	return k
}

// copy appends a text of the entry to k.text, and makes the entry use the copy.
func (k *kept) copy(part *[]byte) {
	if len(*part) == 0 {
		return
	}
	from := len(k.text)
	k.text = append(k.text, *part...)
	*part = k.text[from:len(k.text):len(k.text)]
}
