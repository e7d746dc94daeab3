// Package journal keeps a node's debts to a store in files, so that the debts outlive the process.
//
// Each process has a separate file. Every change is appended with one write, before the request that caused the change
// is answered. So if a process is killed, nothing is lost. After a loss of power, changes may be lost, because nothing
// is flushed to a disk.
//
// The file is locked while its process lives. Any other process takes over an unlocked file ([Journal.TakeOver]). If
// the process that takes over is killed before it has removed the file, the debts are charged twice. They are never
// dropped.
package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// An Entry identifies a debt.
type Entry struct {
	Tier          uint8
	IsLease       bool   // the debt is of a lease; otherwise it is of the node's share or of costs beyond holds
	Tokens, Units uint64 // the quota of the debt; 0 for the limit's own policy
	Key           string
}

const (
	magic      = "weir debts 1\n"
	minRewrite = 1 << 20 // a file shorter than this is not rewritten
	maxRecord  = 1 << 20 // bytes of a record
)

// A Journal is the file of a process. Its methods may be called from any goroutine.
type Journal struct {
	stem, header string
	onError      func(error)

	mu        sync.Mutex
	file      *os.File         // nil after Close, and while a journal that rests owes nothing
	owed      map[Entry]uint64 // nil after Close
	size      int64
	rewriteAt int64 // the size at which the file is rewritten
	state     struct {
		isTorn    bool // the end of the file may be half of a record
		isResting bool // there is a file only while something is owed: see Rest
	}
	err string // the last reported error
}

// Open makes the file of this process. Its name is the stem, followed by a random word. Files with another identity are
// not taken over. The function onError is called with the error of a later write, unless the previous write had the
// same error.
func Open(stem, identity string, onError func(error)) (*Journal, error) {
	if !filepath.IsAbs(stem) {
		return nil, fmt.Errorf("the path %q: want a full one", stem)
	}
	j := &Journal{stem: stem, header: magic + identity + "\n", onError: onError, owed: map[Entry]uint64{}}
	if err := protected(filepath.Dir(stem)); err != nil {
		return nil, err
	}
	return j, j.rewrite()
}

// Note writes the complete debt of the entry to the file. If the write fails, [Journal.Mend] makes the file again
// later.
func (j *Journal) Note(e Entry, owed uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.owed == nil || j.owed[e] == owed {
		return
	}
	if len(e.Key) > maxRecord-fixedSize {
		j.report(fmt.Errorf("a key of %d bytes: want at most %d", len(e.Key), maxRecord-fixedSize))
		return
	}
	if owed == 0 {
		delete(j.owed, e)
	} else {
		j.owed[e] = owed
	}
	switch {
	case j.state.isResting && len(j.owed) == 0:
		j.report(j.remove())
		return
	case j.file == nil:
		j.report(j.rewrite())
		return
	case j.state.isTorn:
		return
	}
	n, err := j.file.Write(appendRecord(nil, e, owed))
	j.size += int64(n)
	j.state.isTorn = err != nil
	if j.size >= j.rewriteAt && err == nil {
		j.rewriteAt = 2 * j.size
		err = j.rewrite()
	}
	j.report(err)
}

// Mend makes the file again if a write to it has failed.
func (j *Journal) Mend() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.owed != nil && (j.state.isTorn || j.file == nil && len(j.owed) > 0) {
		j.report(j.rewrite())
	}
}

// Rest removes the file if nothing is owed. From then on, the journal has a file only while something is owed.
func (j *Journal) Rest() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state.isResting = true; len(j.owed) == 0 {
		j.report(j.remove())
	}
}

func (j *Journal) remove() error {
	if j.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(j.file.Name()), j.file.Close())
	j.file, j.state.isTorn = nil, false
	return err
}

// Path returns the path of the file, or "" if there is none.
func (j *Journal) Path() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return ""
	}
	return j.file.Name()
}

// Close ends the journal. It leaves the file to the next process if something is owed, and otherwise removes it.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.owed) == 0 {
		j.owed = nil
		return j.remove()
	}
	var err error
	if j.state.isTorn || j.file == nil {
		err = j.rewrite()
	}
	if j.file != nil {
		err = errors.Join(err, j.file.Close())
	}
	j.file, j.owed = nil, nil
	return err
}

// report calls onError with an error, unless the previous error was the same apart from the name of the file.
func (j *Journal) report(err error) {
	text := ""
	if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
		text = pathErr.Op + pathErr.Err.Error()
	} else if err != nil {
		text = err.Error()
	}
	if text != j.err && err != nil {
		j.onError(err)
	}
	j.err = text
}

func (j *Journal) rewrite() error {
	next, err := j.create()
	if err != nil {
		return err
	}
	content := []byte(j.header)
	for e, owed := range j.owed {
		content = appendRecord(content, e, owed)
	}
	if _, err := next.Write(content); err != nil {
		return errors.Join(err, os.Remove(next.Name()), next.Close())
	}
	if j.file != nil {
		err = errors.Join(os.Remove(j.file.Name()), j.file.Close())
		if errors.Is(err, os.ErrNotExist) {
			err = nil // another process has removed it
		}
	}
	j.file, j.size, j.state.isTorn = next, int64(len(content)), false
	j.rewriteAt = max(minRewrite, 2*j.size)
	return err
}

// create makes an empty file and locks it. Another process may find and remove the file before it is locked; then
// create makes another one.
func (j *Journal) create() (*os.File, error) {
	for {
		f, err := os.OpenFile(j.stem+"."+rand.Text()+suffix, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		switch locked, err := lock(f); {
		case err != nil:
			return nil, errors.Join(err, os.Remove(f.Name()), f.Close())
		case locked:
			return f, nil
		}
		_ = f.Close() // its content does not matter
	}
}

const suffix = ".debts"

var suffixPattern = regexp.MustCompile(`^\.[A-Z2-7]{26}` + regexp.QuoteMeta(suffix) + `$`)

// Stem reports whether a path is the path of a journal file, and returns its stem.
func Stem(path string) (stem string, ok bool) {
	start := len(path) - len(suffix) - 27
	if start <= 0 || !suffixPattern.MatchString(path[start:]) {
		return "", false
	}
	return path[:start], true
}

// A Leftover contains the contents of an unlocked file, which an ended process has left.
type Leftover struct {
	Path string
	Last time.Time // when the file was last written to, by the machine's clock
	Owed map[Entry]uint64
	// Err is set if the file has another identity. It is also set if the end of the file cannot be read; the debts in
	// that part are then missing from Owed.
	Err error
}

// TakeOver calls the function take for each file of the stem that is not locked and not empty. If take returns true,
// TakeOver removes the file.
func (j *Journal) TakeOver(take func(Leftover) bool) error {
	folder, err := os.ReadDir(filepath.Dir(j.stem))
	for _, e := range folder {
		path := filepath.Join(filepath.Dir(j.stem), e.Name())
		if stem, ok := Stem(path); ok && stem == j.stem && e.Type().IsRegular() {
			err = errors.Join(err, j.takeOver(path, take))
		}
	}
	return err
}

func (j *Journal) takeOver(path string, take func(Leftover) bool) error {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return err
	}
	defer f.Close()
	if locked, err := lock(f); err != nil || !locked {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if records, ok := bytes.CutPrefix(content, []byte(j.header)); ok {
		leftover := Leftover{Path: path, Last: info.ModTime()}
		leftover.Owed, leftover.Err = read(records)
		if len(leftover.Owed) > 0 || leftover.Err != nil {
			if !take(leftover) {
				return nil
			}
		}
	} else if !strings.HasPrefix(j.header, string(content)) { // otherwise the process was killed while it made the file
		first, _, _ := bytes.Cut(content[:min(len(content), 500)], []byte("\n"))
		if otherHeader, ok := bytes.CutPrefix(content, []byte(magic)); ok {
			first, _, _ = bytes.Cut(otherHeader[:min(len(otherHeader), 500)], []byte("\n"))
		}
		take(Leftover{Path: path, Err: fmt.Errorf("it is of another limit, or of another version: %q", first)})
		return nil
	}
	return os.Remove(path)
}

// read returns the debts in the records. An incomplete last record does not count, because its request was not
// answered.
func read(records []byte) (owed map[Entry]uint64, err error) {
	owed = map[Entry]uint64{}
	for len(records) >= headSize {
		length := int(binary.LittleEndian.Uint32(records))
		if length < fixedSize || length > maxRecord {
			return owed, fmt.Errorf("a record of %d bytes, %d bytes before the end", length, len(records))
		}
		if len(records) < headSize+length {
			return owed, nil
		}
		body := records[headSize : headSize+length]
		if xxhash.Sum64(body) != binary.LittleEndian.Uint64(records[4:]) {
			return owed, fmt.Errorf("a record with a wrong checksum, %d bytes before the end", len(records))
		}
		e := Entry{
			Tier: body[0], IsLease: body[1] == 1, Tokens: binary.LittleEndian.Uint64(body[10:]),
			Units: binary.LittleEndian.Uint64(body[18:]), Key: string(body[fixedSize:]),
		}
		if n := binary.LittleEndian.Uint64(body[2:]); n > 0 {
			owed[e] = n
		} else {
			delete(owed, e)
		}
		records = records[headSize+length:]
	}
	return owed, nil
}

const (
	headSize  = 12 // bytes of the length and the checksum
	fixedSize = 26 // bytes of a record before its key
)

// appendRecord appends a record. It begins with the length and the checksum of what follows: the tier, a flag for debts
// of leases, the debt, the quota and the key.
func appendRecord(b []byte, e Entry, owed uint64) []byte {
	start := len(b)
	b = append(b, make([]byte, headSize)...)
	b = append(b, e.Tier, 0)
	if e.IsLease {
		b[len(b)-1] = 1
	}
	for _, n := range [...]uint64{owed, e.Tokens, e.Units} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(b, e.Key...)
	body := b[start+headSize:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(body)))
	binary.LittleEndian.PutUint64(b[start+4:], xxhash.Sum64(body))
	return b
}
