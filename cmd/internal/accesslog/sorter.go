package accesslog

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/weir-go/weir/cmd/internal/tempfile"
)

const (
	// Parts of sortBytes bytes are sorted in memory and written to disk as runs.
	sortBytes = 8 << 20
	// maxRuns is how many runs of one level are merged into one run of the next level. Each run takes a buffer while
	// it is read.
	maxRuns   = 64
	runBuffer = 64 << 10
)

// A sorter sorts entries by time, then by file, then in the order in which they came, in bounded memory. It sorts parts
// of sortBytes bytes, writes them to a temporary file as runs, and merges the runs. With fewer than four thousand runs
// (32 GiB of entries), the file is at most twice the size of the entries.
//
// The sorter is our own. The libraries that we found bound only the number of records in memory, not their size, and a
// line may have a mebibyte.
type sorter struct {
	maxMemory int // bytes in memory
	maxRuns   int // number of runs of a level that are merged

	text       []byte   // records that are not on the disk yet
	index      []record // the records in text
	file       *tempfile.File
	size       int64 // size of the file
	runs       []run
	addedBytes int64 // bytes of all records that were added
}

func newSorter() *sorter { return &sorter{maxMemory: sortBytes, maxRuns: maxRuns} }

// A record is an entry as the sorter stores it.
type record struct {
	nanos int64
	file  int
	text  []byte
}

type run struct {
	from, to int64
	level    int
}

func (r record) compare(s record) int { return cmp.Or(cmp.Compare(r.nanos, s.nanos), r.file-s.file) }

func (s *sorter) add(e *Entry) error {
	if s.text == nil {
		s.text = make([]byte, 0, s.maxMemory) // allocated once, because records point into it
	}
	from := len(s.text)
	s.text = appendEntry(s.text, e)
	s.addedBytes += int64(len(s.text) - from)
	s.index = append(s.index, record{e.Time.UnixNano(), e.file, s.text[from:]})
	const perRecord = 48
	if len(s.text)+perRecord*len(s.index) < s.maxMemory {
		return nil
	}
	return s.spill()
}

func (s *sorter) sort() { slices.SortStableFunc(s.index, record.compare) }

// spill writes the records in memory to the file, as a run. It merges the runs of a level if there are too many.
func (s *sorter) spill() (err error) {
	if s.file == nil {
		if s.file, err = tempfile.New(tempContent); err != nil {
			return err
		}
	}
	s.sort()
	next := 0
	err = s.write(0, func() ([]byte, error) {
		if next == len(s.index) {
			return nil, io.EOF
		}
		next++
		return s.index[next-1].text, nil
	})
	s.text, s.index = s.text[:0], s.index[:0]
	for level := 0; err == nil; level++ {
		first := len(s.runs) - s.maxRuns
		if first < 0 || s.runs[first].level != level {
			return nil
		}
		m := s.merge(s.runs[first:])
		s.runs = s.runs[:first]
		err = s.write(level+1, func() ([]byte, error) {
			r, err := m.next()
			return r.text, err
		})
	}
	return err
}

const tempContent = "the lines that are sorted"

// write writes the records from next, until io.EOF, to the file as one run.
func (s *sorter) write(level int, next func() ([]byte, error)) error {
	r := run{s.size, s.size, level}
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, s.size), runBuffer)
	for {
		text, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		head := binary.AppendUvarint(w.AvailableBuffer(), uint64(len(text)))
		_, _ = w.Write(head) // Flush returns the error
		_, _ = w.Write(text)
		r.to += int64(len(head) + len(text))
	}
	if err := w.Flush(); err != nil {
		return tempfile.Explain(tempContent, err)
	}
	s.size, s.runs = r.to, append(s.runs, r)
	return nil
}

// sortedEntries has the entries of a sorter, in order.
type sortedEntries struct {
	merge
	entry                 Entry
	names                 map[string]string // names of header fields
	totalBytes, readBytes int64             // bytes of all records, and of the records that were read
}

// entries returns the entries that were added. No entry may be added afterwards.
func (s *sorter) entries() *sortedEntries {
	s.sort()
	entries := &sortedEntries{merge: s.merge(s.runs), names: map[string]string{}, totalBytes: s.addedBytes}
	if len(s.index) > 0 {
		entries.sources = append(entries.sources, &source{memory: s.index, index: len(s.runs)})
	}
	return entries
}

// next returns the next entry, or io.EOF after the last. It is valid until the following call.
func (s *sortedEntries) next() (*Entry, error) {
	r, err := s.merge.next()
	if err != nil {
		return nil, err
	}
	s.readBytes += int64(len(r.text))
	s.entry.parse(r, s.names)
	return &s.entry, nil
}

// progress returns the share of the entries that next has returned, from 0 to 1.
func (s *sortedEntries) progress() float64 {
	return float64(s.readBytes) / float64(max(s.totalBytes, 1))
}

// Close closes the file.
func (s *sorter) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

type source struct {
	index  int
	memory []record
	run    *bufio.Reader
	head   record // the next record
	buffer []byte // the text of head, if it comes from a run
}

// advance makes the next record the head. After the last record, it returns io.EOF.
func (s *source) advance() error {
	if s.run == nil {
		if len(s.memory) == 0 {
			return io.EOF
		}
		s.head, s.memory = s.memory[0], s.memory[1:]
		return nil
	}
	n, err := binary.ReadUvarint(s.run)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err == nil {
		s.buffer = slices.Grow(s.buffer[:0], int(n))[:n]
		_, err = io.ReadFull(s.run, s.buffer)
	}
	if err != nil {
		return tempfile.Explain(tempContent, err)
	}
	s.head = recordOf(s.buffer)
	return nil
}

// A merge merges several sources into one ordered sequence. It is a heap with the source of the next record on top.
type merge struct {
	sources []*source
	started bool
}

func (s *sorter) merge(runs []run) (m merge) {
	for i, r := range runs {
		section := io.NewSectionReader(s.file, r.from, r.to-r.from)
		m.sources = append(m.sources, &source{index: i, run: bufio.NewReaderSize(section, runBuffer)})
	}
	return m
}

// next returns the next record. The record is valid until the following call.
func (m *merge) next() (record, error) {
	if !m.started {
		m.started = true
		for _, s := range m.sources {
			if err := s.advance(); err != nil {
				return record{}, err // each source has at least one record
			}
		}
		heap.Init(m)
	} else if len(m.sources) > 0 {
		switch err := m.sources[0].advance(); {
		case errors.Is(err, io.EOF):
			heap.Pop(m)
		case err != nil:
			return record{}, err
		default:
			heap.Fix(m, 0)
		}
	}
	if len(m.sources) == 0 {
		return record{}, io.EOF
	}
	return m.sources[0].head, nil
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (m *merge) Len() int { return len(m.sources) }
func (m *merge) Less(i, j int) bool {
	a, b := m.sources[i], m.sources[j]
	return cmp.Or(a.head.compare(b.head), a.index-b.index) < 0
}
func (m *merge) Swap(i, j int) { m.sources[i], m.sources[j] = m.sources[j], m.sources[i] }
func (m *merge) Push(s any)    { m.sources = append(m.sources, s.(*source)) }
func (m *merge) Pop() any {
	last := m.sources[len(m.sources)-1]
	m.sources = m.sources[:len(m.sources)-1]
	return last
}
