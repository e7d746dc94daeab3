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
	magic    = "weir debts 1\n"
	smallest = 1 << 20 // a file shorter than this is not rewritten
	most     = 1 << 20 // bytes of a record
)

// A Journal is the file of a process. Its methods may be called from any goroutine.
type Journal struct {
	stem, header string
	failed       func(error)

	mu   sync.Mutex
	file *os.File         // nil after Close, and while a journal that rests owes nothing
	owed map[Entry]uint64 // nil after Close
	size int64
	full int64
	is   struct {
		torn bool // the end of the file may be half of a record
		rest bool // there is a file only while something is owed: see Rest
	}
	err string // the last reported error
}

// Open makes the file of this process. Its name is the stem, followed by a random word. Files with another identity are
// not taken over. The function failed is called with the error of a later write, unless the previous write had the same
// error.
func Open(stem, identity string, failed func(error)) (*Journal, error) {
	if !filepath.IsAbs(stem) {
		return nil, fmt.Errorf("the path %q: want a full one", stem)
	}
	j := &Journal{stem: stem, header: magic + identity + "\n", failed: failed, owed: map[Entry]uint64{}}
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
	if len(e.Key) > most-fixed {
		j.tell(fmt.Errorf("a key of %d bytes: want at most %d", len(e.Key), most-fixed))
		return
	}
	if owed == 0 {
		delete(j.owed, e)
	} else {
		j.owed[e] = owed
	}
	switch {
	case j.is.rest && len(j.owed) == 0:
		j.tell(j.remove())
		return
	case j.file == nil:
		j.tell(j.rewrite())
		return
	case j.is.torn:
		return
	}
	n, err := j.file.Write(appendRecord(nil, e, owed))
	j.size += int64(n)
	j.is.torn = err != nil
	if j.size >= j.full && err == nil {
		j.full = 2 * j.size
		err = j.rewrite()
	}
	j.tell(err)
}

// Mend makes the file again if a write to it has failed.
func (j *Journal) Mend() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.owed != nil && (j.is.torn || j.file == nil && len(j.owed) > 0) {
		j.tell(j.rewrite())
	}
}

// Rest removes the file if nothing is owed. From then on, the journal has a file only while something is owed.
func (j *Journal) Rest() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.is.rest = true; len(j.owed) == 0 {
		j.tell(j.remove())
	}
}

func (j *Journal) remove() error {
	if j.file == nil {
		return nil
	}
	err := errors.Join(os.Remove(j.file.Name()), j.file.Close())
	j.file, j.is.torn = nil, false
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
	if j.is.torn || j.file == nil {
		err = j.rewrite()
	}
	if j.file != nil {
		err = errors.Join(err, j.file.Close())
	}
	j.file, j.owed = nil, nil
	return err
}

// tell reports an error, unless the previous error was the same apart from the name of the file.
func (j *Journal) tell(err error) {
	text := ""
	if of := (*os.PathError)(nil); errors.As(err, &of) {
		text = of.Op + of.Err.Error()
	} else if err != nil {
		text = err.Error()
	}
	if text != j.err && err != nil {
		j.failed(err)
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
	j.file, j.size, j.is.torn = next, int64(len(content)), false
	j.full = max(smallest, 2*j.size)
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
		switch has, err := lock(f); {
		case err != nil:
			return nil, errors.Join(err, os.Remove(f.Name()), f.Close())
		case has:
			return f, nil
		}
		_ = f.Close() // its content does not matter
	}
}

const suffix = ".debts"

var random = regexp.MustCompile(`^\.[A-Z2-7]{26}` + regexp.QuoteMeta(suffix) + `$`)

// Stem reports whether a path is the path of a journal file, and returns its stem.
func Stem(path string) (stem string, is bool) {
	at := len(path) - len(suffix) - 27
	if at <= 0 || !random.MatchString(path[at:]) {
		return "", false
	}
	return path[:at], true
}

// A Former contains the contents of an unlocked file.
type Former struct {
	Path string
	Last time.Time // when the file was last written to, by the machine's clock
	Owed map[Entry]uint64
	// Err is set if the file has another identity. It is also set if the end of the file cannot be read; the debts in
	// that part are then missing from Owed.
	Err error
}

// TakeOver calls the function take for each file of the stem that is not locked and not empty. If take returns true,
// TakeOver removes the file.
func (j *Journal) TakeOver(take func(Former) bool) error {
	folder, err := os.ReadDir(filepath.Dir(j.stem))
	for _, e := range folder {
		path := filepath.Join(filepath.Dir(j.stem), e.Name())
		if stem, is := Stem(path); is && stem == j.stem && e.Type().IsRegular() {
			err = errors.Join(err, j.takeOver(path, take))
		}
	}
	return err
}

func (j *Journal) takeOver(path string, take func(Former) bool) error {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return err
	}
	defer f.Close()
	if has, err := lock(f); err != nil || !has {
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
	if rest, is := bytes.CutPrefix(content, []byte(j.header)); is {
		former := Former{Path: path, Last: info.ModTime()}
		former.Owed, former.Err = read(rest)
		if len(former.Owed) > 0 || former.Err != nil {
			if !take(former) {
				return nil
			}
		}
	} else if !strings.HasPrefix(j.header, string(content)) { // otherwise the process was killed while it made the file
		first, _, _ := bytes.Cut(content[:min(len(content), 500)], []byte("\n"))
		if rest, is := bytes.CutPrefix(content, []byte(magic)); is {
			first, _, _ = bytes.Cut(rest[:min(len(rest), 500)], []byte("\n"))
		}
		take(Former{Path: path, Err: fmt.Errorf("it is of another limit, or of another version: %q", first)})
		return nil
	}
	return os.Remove(path)
}

// read returns the debts in the records. An incomplete last record does not count, because its request was not
// answered.
func read(records []byte) (owed map[Entry]uint64, err error) {
	owed = map[Entry]uint64{}
	for len(records) >= head {
		length := int(binary.LittleEndian.Uint32(records))
		if length < fixed || length > most {
			return owed, fmt.Errorf("a record of %d bytes, %d bytes before the end", length, len(records))
		}
		if len(records) < head+length {
			return owed, nil
		}
		body := records[head : head+length]
		if xxhash.Sum64(body) != binary.LittleEndian.Uint64(records[4:]) {
			return owed, fmt.Errorf("a record with a wrong checksum, %d bytes before the end", len(records))
		}
		e := Entry{
			Tier: body[0], IsLease: body[1] == 1, Tokens: binary.LittleEndian.Uint64(body[10:]),
			Units: binary.LittleEndian.Uint64(body[18:]), Key: string(body[fixed:]),
		}
		if n := binary.LittleEndian.Uint64(body[2:]); n > 0 {
			owed[e] = n
		} else {
			delete(owed, e)
		}
		records = records[head+length:]
	}
	return owed, nil
}

const (
	head  = 12 // bytes of the length and the checksum
	fixed = 26 // bytes of a record before its key
)

// appendRecord appends a record. It begins with the length and the checksum of what follows: the tier, a flag for debts
// of leases, the debt, the quota and the key.
func appendRecord(to []byte, e Entry, owed uint64) []byte {
	at := len(to)
	to = append(to, make([]byte, head)...)
	to = append(to, e.Tier, 0)
	if e.IsLease {
		to[len(to)-1] = 1
	}
	for _, n := range [...]uint64{owed, e.Tokens, e.Units} {
		to = binary.LittleEndian.AppendUint64(to, n)
	}
	to = append(to, e.Key...)
	body := to[at+head:]
	binary.LittleEndian.PutUint32(to[at:], uint32(len(body)))
	binary.LittleEndian.PutUint64(to[at+4:], xxhash.Sum64(body))
	return to
}
