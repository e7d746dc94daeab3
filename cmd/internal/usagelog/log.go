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
	At         time.Time     // when it began, or when it was logged if the log has only that
	Took       time.Duration // how long it took; 0 if the log does not have this
	Key, Model string
	Cost       uint64
}

// A Log has the requests that were read.
type Log struct {
	Format   string
	Requests []Request // in the order of time
	Key      string    // name of the field that has the keys; "" if none was found
	Summed   uint64    // requests for which the log has only sums
	Untimed  uint64    // requests for which the log has no duration
	Late     uint64    // requests with an earlier time than a request in an earlier line
	MostLate time.Duration
	Skipped  uint64 // records that were not used
	Reasons  []*accesslog.LineError
}

// Options has the settings for reading a log.
type Options struct {
	Key    string        // a path of names to the key, such as "metadata.team"; "" for the first of the usual paths
	Counts usage.Weights // which tokens are counted
}

const (
	maxReasons  = 5
	maxLine     = 16 << 20
	maxRequests = 20_000_000
	maxTokens   = 1e15
)

// Read reads logs from files, or from standard input for "-". It returns an error if something is wrong with a file, or
// if the files have no request. If a record cannot be used, it is skipped and counted.
func Read(names []string, o Options) (*Log, error) { return readUpTo(names, o, maxRequests) }

// readUpTo is like Read, but reads at most limit requests.
func readUpTo(names []string, o Options, limit int) (*Log, error) {
	r := &reader{options: o, limit: limit, log: &Log{}, texts: map[string]string{}}
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
	limit   int // largest number of requests
	log     *Log
	file    string            // name of the file, if there are several
	latest  time.Time         // latest time of the requests so far
	texts   map[string]string // stored texts, so that a repeated text takes no additional memory
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

// read reads a file. The file is a table or JSON. JSON has one value per line, or one value that takes several lines.
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

// skip counts a record that is not used, with the reason.
func (r *reader) skip(line int, err error) {
	l := r.log
	if l.Skipped++; len(l.Reasons) < maxReasons {
		l.Reasons = append(l.Reasons, &accesslog.LineError{File: r.file, Line: line, Err: err})
	}
}

// noteFormat notes in which form a record is.
func (r *reader) noteFormat(name string) {
	switch {
	case r.log.Format == "":
		r.log.Format = name
	case r.log.Format != name:
		r.log.Format = "several formats"
	}
}

// add adds a request.
func (r *reader) add(q Request) error {
	if len(r.log.Requests) >= r.limit {
		return r.errTooMany()
	}
	q.Key, q.Model = r.intern(q.Key), r.intern(q.Model)
	r.log.Requests = append(r.log.Requests, q)
	return nil
}

// addOne adds a single request of the log.
func (r *reader) addOne(q Request) error {
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

// addSum adds n requests that together have the cost of q. Their times are evenly spread over the period.
func (r *reader) addSum(q Request, n uint64, period time.Duration) error {
	if n = max(n, 1); n > uint64(r.limit) {
		return r.errTooMany()
	}
	total, from := q.Cost, q.At
	for i := range n {
		q.At = from.Add(time.Duration(float64(period) / float64(n) * float64(i)))
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

func (r *reader) errTooMany() error {
	return fmt.Errorf("more than %d requests: use a part of the log", r.limit)
}

// intern returns the stored copy of a text. If there is none, it stores the text.
func (r *reader) intern(text string) string {
	stored, ok := r.texts[text]
	if !ok {
		stored = text
		r.texts[text] = text
	}
	return stored
}

// keyOf returns the key of a record. The first record that has a key determines the field of the key: it is the first
// of the usual fields that this record has.
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
