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

// A reorderBuffer sorts the entries of a file by time. A log is not in order if the server logs a request at its end
// with its start time, or rounds the time. The buffer holds back as many lines as it may, and returns the earliest.
// Log.Next detects a line that comes too late even for this.
type reorderBuffer struct {
	latest       time.Time        // latest time of the entries that were read
	queue        []queueItem      // sorted by time; entries with the same time are in the order in which they came
	storage      []queueItem      // the memory of the queue
	fileOrder    []*bufferedEntry // entries that OnEntry has not passed on yet, in the order of the file
	bytes        int              // bytes of text in the queue
	lastReturned *bufferedEntry   // the entry that next returned last
	free         []*bufferedEntry
	end          error // the error that ended the reading, returned after the queue
}

// A queueItem is an entry in the queue, with a copy of its time for a fast search.
type queueItem struct {
	nanos int64
	*bufferedEntry
}

// A bufferedEntry is an entry with its text, or the error of a line. An error stays directly after the entry with the
// latest time among the entries that were read before it.
type bufferedEntry struct {
	entry Entry
	text  []byte
	err   *LineError
	refs  int // how many more times the entry will be used
}

// next returns the next entry of the file, or the error of a line. The entry is valid until the following call of next.
func (r *reorderBuffer) next(f *file) (*Entry, error) {
	if f.log.window == noLines {
		return f.dates.next(f)
	}
	if r.lastReturned != nil {
		r.release(r.lastReturned)
		r.lastReturned = nil
	}
	files := max(len(f.log.active), 1)
	for r.end == nil && (len(r.queue) == 0 || len(r.queue) < f.log.window/files && r.bytes < orderBytes/files) {
		r.read(f)
	}
	if len(r.queue) == 0 {
		return nil, r.end
	}
	b := r.queue[0].bufferedEntry
	r.queue = r.queue[1:]
	if b.err != nil {
		return nil, b.err
	}
	r.lastReturned = b
	r.bytes -= len(b.text)
	return &b.entry, nil
}

func (r *reorderBuffer) read(f *file) {
	e, err := f.dates.next(f)
	switch lineErr := asLineError(err); {
	case lineErr != nil:
		r.insert(&bufferedEntry{entry: Entry{Time: r.latest}, err: lineErr})
	case err != nil:
		r.end = err
	default:
		b := r.copyEntry(e)
		if r.latest.IsZero() || !e.Time.Before(r.latest) {
			r.latest = e.Time
		} else {
			b.entry.Late = r.latest.Sub(e.Time)
		}
		b.entry.file, b.refs = f.index, 1
		if f.log.onEntry != nil {
			b.refs, r.fileOrder = 2, append(r.fileOrder, b)
		}
		r.insert(b)
	}
}

// passEntry passes the next entry, in the order of the file, to fn, the function of Log.OnEntry. It must be called once
// for each entry that next has returned.
func (r *reorderBuffer) passEntry(fn func(*Entry)) {
	b := r.fileOrder[0]
	r.fileOrder = r.fileOrder[1:]
	fn(&b.entry)
	r.release(b)
}

func (r *reorderBuffer) release(b *bufferedEntry) {
	if b.refs--; b.refs == 0 {
		r.free = append(r.free, b)
	}
}

func (r *reorderBuffer) insert(b *bufferedEntry) {
	r.bytes += len(b.text)
	item := queueItem{b.entry.Time.UnixNano(), b}
	index := len(r.queue)
	if index > 0 && r.queue[index-1].nanos > item.nanos {
		index, _ = slices.BinarySearchFunc(r.queue, item.nanos, func(q queueItem, nanos int64) int {
			if q.nanos > nanos {
				return 1
			}
			return -1 // after entries with the same time
		})
	}
	if len(r.queue) == cap(r.queue) { // the queue has reached the end of its memory
		if len(r.storage) < 2*len(r.queue)+2 {
			r.storage = make([]queueItem, 4*len(r.queue)+64)
		}
		r.queue = r.storage[:copy(r.storage, r.queue)]
	}
	r.queue = slices.Insert(r.queue, index, item)
}

// copyEntry returns a copy of the entry. It reuses the memory of an entry from r.free.
func (r *reorderBuffer) copyEntry(e *Entry) *bufferedEntry {
	var b *bufferedEntry
	if n := len(r.free); n > 0 {
		b, r.free = r.free[n-1], r.free[:n-1]
	} else {
		b = new(bufferedEntry)
	}
	n := len(e.Client) + len(e.Method) + len(e.Target) + len(e.Proto) + len(e.Host)
	for i := range e.Headers {
		n += len(e.Headers[i].Value)
	}
	headers := append(b.entry.Headers[:0], e.Headers...)
	b.entry, b.text = *e, slices.Grow(b.text[:0], n) // one allocation for all texts
	b.entry.Headers = headers
	for _, text := range b.entry.texts() {
		b.copy(text)
	}
	for i := range headers {
		b.copy(&headers[i].Value)
	}
	return b
}

// copy appends a text of the entry to b.text, and makes the entry use the copy.
func (b *bufferedEntry) copy(part *[]byte) {
	if len(*part) == 0 {
		return
	}
	from := len(b.text)
	b.text = append(b.text, *part...)
	*part = b.text[from:len(b.text):len(b.text)]
}
