package usagelog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/usage"
)

// A Request is a request in a log.
type Request struct {
	At         time.Time     // when it began; or when it was logged, if the log only has that
	Took       time.Duration // 0 if the log does not have it
	Key, Model string
	Cost       uint64
}

// A Log has the requests that were read.
type Log struct {
	Format   string
	Requests []Request // in the order of time
	Key      string    // the field that has the keys; "" if none was found
	Summed   uint64    // requests of which the log only has sums
	Untimed  uint64    // requests without a duration in the log
	Late     uint64    // requests that are earlier than one in an earlier line
	MostLate time.Duration
	Skipped  uint64 // records that were not used
	Reasons  []*accesslog.LineError
}

// Options are the settings for reading a log.
type Options struct {
	Key    string        // a path of names to the key, such as "metadata.team"; "" for the first of the usual ones
	Counts usage.Weights // what tokens count
}

const (
	maxReasons  = 5
	maxLine     = 16 << 20
	maxRequests = 20_000_000
	mostTokens  = 1e15
)

// Read reads logs from files, or from standard input for "-". The error says what is wrong with a file, or that the
// files have no request. A record that cannot be used is skipped and counted.
func Read(names []string, o Options) (*Log, error) { return readUpTo(names, o, maxRequests) }

// readUpTo is Read of at most that many requests.
func readUpTo(names []string, o Options, most int) (*Log, error) {
	r := &reader{options: o, most: most, log: &Log{}, texts: map[string]string{}}
	for _, name := range names {
		if len(names) > 1 {
			r.file = name
		}
		if err := r.open(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	l := r.log
	if len(l.Requests) == 0 {
		if l.Skipped > 0 {
			return nil, fmt.Errorf("none of its records has a usage (%w)", l.Reasons[0])
		}
		return nil, errors.New("the log is empty: there is nothing to replay")
	}
	slices.SortStableFunc(l.Requests, func(a, b Request) int { return a.At.Compare(b.At) })
	return l, nil
}

// A reader reads logs.
type reader struct {
	options Options
	most    int // requests
	log     *Log
	file    string            // of several
	latest  time.Time         // of the requests so far
	texts   map[string]string // so that a repeated text takes no memory
}

func (r *reader) open(name string) error {
	if name == accesslog.Stdin {
		return r.read(os.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.read(f)
}

// read reads a file: lines of JSON, one JSON value that takes several lines, or a table.
func (r *reader) read(from io.Reader) error {
	in := bufio.NewReaderSize(from, 64<<10)
	start, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start = bytes.TrimLeft(start, " \t\r\n\xef\xbb\xbf")
	switch {
	case len(start) == 0:
		return nil
	case start[0] != '{' && start[0] != '[':
		return r.table(in)
	}
	return r.values(in)
}

// skip counts a record that is not used.
func (r *reader) skip(line int, err error) {
	l := r.log
	if l.Skipped++; len(l.Reasons) < maxReasons {
		l.Reasons = append(l.Reasons, &accesslog.LineError{File: r.file, Line: line, Err: err})
	}
}

// format notes the form of a record.
func (r *reader) format(name string) {
	switch {
	case r.log.Format == "":
		r.log.Format = name
	case r.log.Format != name:
		r.log.Format = "several formats"
	}
}

// add adds a request.
func (r *reader) add(q Request) error {
	if len(r.log.Requests) >= r.most {
		return r.errMany()
	}
	q.Key, q.Model = r.same(q.Key), r.same(q.Model)
	r.log.Requests = append(r.log.Requests, q)
	return nil
}

// one adds a single request of the log.
func (r *reader) one(q Request) error {
	if q.Took == 0 {
		r.log.Untimed++
	}
	if late := r.latest.Sub(q.At); late > 0 {
		r.log.Late, r.log.MostLate = r.log.Late+1, max(r.log.MostLate, late)
	} else {
		r.latest = q.At
	}
	return r.add(q)
}

// sum adds n requests with a total cost, evenly spread over a time.
func (r *reader) sum(q Request, n uint64, over time.Duration) error {
	if n = max(n, 1); n > uint64(r.most) {
		return r.errMany()
	}
	total, from := q.Cost, q.At
	for i := range n {
		q.At = from.Add(time.Duration(float64(over) / float64(n) * float64(i)))
		q.Cost = total / n
		if i < total%n {
			q.Cost++
		}
		r.log.Summed++
		if err := r.add(q); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) errMany() error {
	return fmt.Errorf("more than %d requests: use a part of the log", r.most)
}

// same returns the stored copy of a text.
func (r *reader) same(text string) string {
	kept, ok := r.texts[text]
	if !ok {
		kept = text
		r.texts[text] = text
	}
	return kept
}

// keyOf returns the key of a record. The field is the first usual one that the first record with a key has.
func (r *reader) keyOf(f fields) string {
	name := cmp.Or(r.log.Key, r.options.Key)
	if name == "" {
		for _, usual := range keyNames {
			if f.text(usual) != "" {
				name = usual
				break
			}
		}
	}
	r.log.Key = name
	if name == "" {
		return "everybody"
	}
	return cmp.Or(f.text(name), "(none)")
}
