package accesslog

import (
	"fmt"
	"slices"
	"time"
)

const (
	// orderLines and orderBytes are how many lines, and how much of their text, a file holds back to be sorted, divided
	// by the number of files that are open.
	orderLines = 16 << 10
	orderBytes = 4 << 20
	// mostBehind is by how much a line may be earlier than what was handed on before it came.
	mostBehind = time.Minute
)

// order sorts the entries of a file by their times: servers stamp a request with its start and log it at its end, and
// some round. It holds back as many lines as it may, and hands on the earliest. So a line that is ahead of its time
// waits until the others have come there, and one that is late takes its place as long as that is within the lines that
// are held. One that comes later still is handed on as it is, or is wrong if it is late by more than mostBehind. So is
// one whose date is more than a year earlier than that of a line before it; leaps finds those that are a year later.
type order struct {
	latest   time.Time // of the entries that were read
	released time.Time // of the last one that was handed on in its place
	queue    []*kept   // by time; equal times as they came
	room     []*kept   // of the queue
	bytes    int       // of their text
	given    *kept     // the entry that the caller has
	free     []*kept
	end      error // what comes behind them
}

// kept is an entry with its text, or what is wrong with a line, which stays behind the latest entry before it.
type kept struct {
	entry Entry
	text  []byte
	wrong *LineError
}

// next returns the next entry of the file, which is valid until the following call, or what is wrong with a line.
func (o *order) next(f *file) (*Entry, error) {
	if o.given != nil {
		o.free = append(o.free, o.given)
		o.given = nil
	}
	files := max(len(f.log.active), 1)
	for o.end == nil && (len(o.queue) == 0 || len(o.queue) < f.log.lines/files && o.bytes < orderBytes/files) {
		e, err := f.leaps.next(f)
		if err == nil {
			err = o.check(f, e)
		}
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
			o.insert(k)
		}
	}
	if len(o.queue) == 0 {
		return nil, o.end
	}
	k := o.queue[0]
	o.queue = o.queue[1:]
	if k.wrong != nil {
		return nil, k.wrong
	}
	o.given = k
	o.bytes -= len(k.text)
	if k.entry.Time.After(o.released) {
		o.released = k.entry.Time
	}
	return &k.entry, nil
}

// check returns what is wrong with an entry that is too late.
func (o *order) check(f *file, e *Entry) error {
	if !e.Time.Before(o.latest) {
		return nil
	}
	wrong := ""
	switch behind := o.released.Sub(e.Time); {
	case o.latest.Sub(e.Time) > longLeap:
		wrong = "is more than a year earlier than that of a line before it"
	case behind > mostBehind && !o.released.IsZero() && f.log.lines > 1:
		wrong = fmt.Sprintf("is %v earlier than that of a line that is too far before it to be sorted", behind)
	default:
		return nil
	}
	return &LineError{f.log.nameOf(f), e.line, fmt.Errorf("the date %s %s", e.Time.Format(time.RFC3339), wrong)}
}

// insert puts an entry into its place.
func (o *order) insert(k *kept) {
	o.bytes += len(k.text)
	at := len(o.queue)
	if at > 0 && o.queue[at-1].entry.Time.After(k.entry.Time) {
		at, _ = slices.BinarySearchFunc(o.queue, k.entry.Time, func(k *kept, t time.Time) int {
			if k.entry.Time.After(t) {
				return 1
			}
			return -1 // behind those of the same time
		})
	}
	if len(o.queue) == cap(o.queue) { // it has moved to the end of its room
		if len(o.room) < 2*len(o.queue)+2 {
			o.room = make([]*kept, 4*len(o.queue)+64)
		}
		o.queue = o.room[:copy(o.room, o.queue)]
	}
	o.queue = slices.Insert(o.queue, at, k)
}

// keep copies an entry.
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
	k.entry, k.text = *e, slices.Grow(k.text[:0], n) // in one piece
	k.entry.Headers = headers
	for _, text := range []*[]byte{&k.entry.Client, &k.entry.Method, &k.entry.Target, &k.entry.Proto, &k.entry.Host} {
		k.copy(text)
	}
	for i := range headers {
		k.copy(&headers[i].Value)
	}
	return k
}

// copy has a part of the entry be one of the text.
func (k *kept) copy(part *[]byte) {
	if len(*part) == 0 {
		return
	}
	from := len(k.text)
	k.text = append(k.text, *part...)
	*part = k.text[from:len(k.text):len(k.text)]
}
