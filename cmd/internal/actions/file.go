package actions

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/atomicfile"
)

// FileName is the name of the file of actions in the folder of a state.
const FileName = "actions.json"

const (
	format  = 1
	maxFile = 4 << 20 // bytes, of Most actions with the longest texts
)

// A file keeps the actions of a table. The zero file keeps none. Its content is replaced whole; who changes it holds a
// lock on a file beside it.
type file struct {
	path   string
	seen   version // what was read or written last
	warned string  // the last error
}

// A version tells contents of a file apart without reading them: each is a file of its own.
type version struct {
	info fs.FileInfo
	size int64
	at   time.Time
}

func (v version) is(other version) bool {
	if v.info == nil || other.info == nil {
		return v.info == nil && other.info == nil
	}
	return os.SameFile(v.info, other.info) && v.size == other.size && v.at.Equal(other.at)
}

// A content is what a file has.
type content struct {
	Format  int      `json:"format"`
	Secret  string   `json:"secret"` // of the ids of keys, in hexadecimal digits
	Next    uint64   `json:"next"`   // id
	Actions []Action `json:"actions"`
}

func (f *file) version() version {
	info, err := os.Lstat(f.path)
	if err != nil {
		return version{}
	}
	return version{info, info.Size(), info.ModTime()}
}

// isOther reports whether another process has written the file.
func (f *file) isOther() bool { return !f.seen.is(f.version()) }

// warn logs an error once.
func (f *file) warn(log *slog.Logger, err error) {
	if text := err.Error(); text != f.warned {
		f.warned = text
		log.Error("actions: those that were read last stay in force", "err", err)
	}
}

// read returns what the file has; nil if there is none.
func (f *file) read() (*content, error) {
	if f.path == "" {
		return nil, nil
	}
	seen := f.version()
	opened, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.seen = version{}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s: want a file of at most %d bytes that weir has written", f.path, maxFile)
	}
	if err := ownedByUs(info, f.path); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(opened, maxFile))
	if err != nil {
		return nil, err
	}
	c := &content{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w: it is no file of actions: remove it, and there are none", f.path, err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	f.seen = seen
	return c, nil
}

func (c *content) check() error {
	if c.Format != format {
		return fmt.Errorf("format %d: want %d: another version of weir has written it", c.Format, format)
	}
	if secret, err := hex.DecodeString(c.Secret); err != nil || len(secret) != 32 {
		return errors.New("its secret is damaged: remove the file, and there are no actions")
	}
	if len(c.Actions) > Most {
		return fmt.Errorf("%d actions: want at most %d", len(c.Actions), Most)
	}
	for i := range c.Actions {
		if err := c.Actions[i].check(); err != nil {
			return fmt.Errorf("action %d: %w", c.Actions[i].ID, err)
		}
	}
	return nil
}

// write replaces the content of the file.
func (t *Table) write(all []*Active) error {
	f := &t.file
	if f.path == "" {
		return nil
	}
	c := content{Format: format, Secret: hex.EncodeToString(*t.secret.Load()), Next: t.next}
	for _, a := range all {
		c.Actions = append(c.Actions, a.Action)
	}
	err := atomicfile.WritePrivate(f.path, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", " ")
		return encoder.Encode(c)
	})
	if err != nil {
		return err
	}
	f.seen = f.version()
	return nil
}

// adopt returns the actions of a content, with the hits of those that were known, and takes its secret and ids.
func (t *Table) adopt(c *content) (all []*Active) {
	secret, _ := hex.DecodeString(c.Secret) // it was checked
	t.secret.Store(&secret)
	t.next = max(t.next, c.Next)
	known := map[uint64]*Active{}
	for _, a := range t.list() {
		known[a.ID] = a
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		t.next = max(t.next, a.ID+1)
		if old := known[a.ID]; old != nil && old.Action == *a {
			all = append(all, old)
			continue
		}
		all = append(all, &Active{Action: *a})
	}
	return all
}

// Open keeps the actions in a file of a folder from now on; "" is in memory only, beyond which they do not last. What
// the file has is in force at once. Actions that there were before are added, but for keys if the file has a secret of
// its own: the log says so. After an error nothing has changed.
func (t *Table) Open(folder string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := file{}
	if folder != "" {
		next.path = filepath.Join(folder, FileName)
	}
	if next.path == t.file.path {
		return nil
	}
	there, err := next.read()
	if err != nil {
		return err
	}
	all, before, had := t.list(), t.file, *t.secret.Load()
	if there != nil {
		mine := all
		all = t.adopt(there)
		for _, a := range mine {
			if a.IsKey() && hex.EncodeToString(had) != there.Secret {
				t.config.Log.Warn("action: ends, since the file of actions knows its key by another name", "id", a.ID,
					"what", a.Action.String(), "file", next.path)
				continue
			}
			a := &Active{Action: a.Action}
			a.ID, t.next = t.next, t.next+1
			all = append(all, a)
		}
	}
	t.file = next
	if len(all) > 0 && (there == nil || len(all) > len(there.Actions)) {
		done, err := t.file.lock()
		if err == nil {
			err = t.write(all)
			done()
		}
		if err != nil {
			t.file = before
			t.secret.Store(&had)
			return err
		}
	}
	t.publish(all)
	return nil
}

// Forget takes the texts of keys out of the table and its file: for when they are no longer shown.
func (t *Table) Forget() error {
	has := func(a *Active) bool { return a.Text != "" }
	if !slices.ContainsFunc(t.List(), has) {
		return nil
	}
	return t.change(func(all []*Active) ([]*Active, error) {
		for i, a := range all {
			if has(a) {
				all[i] = &Active{Action: a.Action}
				all[i].hits.Store(a.Hits())
				all[i].Text = ""
			}
		}
		return all, nil
	})
}
