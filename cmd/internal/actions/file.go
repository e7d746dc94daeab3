package actions

import (
	"bytes"
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
	"github.com/weir-go/weir/internal/openfile"
)

// FileName is the name of the file of actions in a state folder.
const FileName = "actions.json"

const (
	format  = 1
	maxFile = 4 << 20 // bytes; enough for MaxActions actions with the longest texts
)

// A file keeps the actions of a table. The zero file keeps none. A change replaces the complete file. Meanwhile,
// another file in the same folder is locked.
type file struct {
	path        string
	lastVersion version // the version that was read or written last
	warned      string  // the last error that was logged
}

// A version identifies a file's current content without reading it, because each change creates a new file.
type version struct {
	info fs.FileInfo
	size int64
	at   time.Time
}

func (v version) equals(other version) bool {
	if v.info == nil || other.info == nil {
		return v.info == nil && other.info == nil
	}
	return os.SameFile(v.info, other.info) && v.size == other.size && v.at.Equal(other.at)
}

type content struct {
	Format  int      `json:"format"`
	Secret  string   `json:"secret"` // secret of the ids of keys, in hexadecimal digits
	Next    uint64   `json:"next"`   // the next id
	Actions []Action `json:"actions"`
}

func (f *file) version() version {
	info, err := os.Lstat(f.path)
	if err != nil {
		return version{}
	}
	return version{info, info.Size(), info.ModTime()}
}

// isChanged reports whether another process has written the file since this process last read or wrote it.
func (f *file) isChanged() bool { return !f.lastVersion.equals(f.version()) }

// warn logs an error, unless it is the same as the last logged error.
func (f *file) warn(log *slog.Logger, err error) {
	if text := err.Error(); text != f.warned {
		f.warned = text
		log.Error("actions: the file cannot be read; the actions that were read last stay active", "err", err)
	}
}

func (f *file) read() (*content, error) {
	if f.path == "" {
		return nil, nil
	}
	current := f.version()
	opened, info, err := openfile.Regular(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.lastVersion = version{}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	if info.Size() > maxFile {
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
		return nil, fmt.Errorf("%s: %w: it is not a file of actions: remove it to start without actions", f.path, err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	f.lastVersion = current
	return c, nil
}

func (c *content) check() error {
	if c.Format != format {
		return fmt.Errorf("format %d: want %d: another version of weir has written it", c.Format, format)
	}
	if secret, err := hex.DecodeString(c.Secret); err != nil || len(secret) != 32 {
		return errors.New("its secret is damaged: remove the file to start without actions")
	}
	if len(c.Actions) > MaxActions {
		return fmt.Errorf("%d actions: want at most %d", len(c.Actions), MaxActions)
	}
	for i := range c.Actions {
		if err := c.Actions[i].check(); err != nil {
			return fmt.Errorf("action %d: %w", c.Actions[i].ID, err)
		}
	}
	return nil
}

func (t *Table) write(actions []*Active) error {
	f := &t.file
	if f.path == "" {
		return nil
	}
	c := content{Format: format, Secret: hex.EncodeToString(*t.secret.Load()), Next: t.next}
	for _, a := range actions {
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
	f.lastVersion = f.version()
	return nil
}

// adopt replaces the secret of the table by the secret in the file's content, and raises the next id. It returns the
// actions in the content. An action that the table already has keeps its hits.
func (t *Table) adopt(c *content) (actions []*Active) {
	secret, _ := hex.DecodeString(c.Secret) // read has checked it
	t.secret.Store(&secret)
	t.next = max(t.next, c.Next)
	previous := map[uint64]*Active{}
	for _, a := range t.list() {
		previous[a.ID] = a
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		t.next = max(t.next, a.ID+1)
		if old := previous[a.ID]; old != nil && old.Action == *a {
			actions = append(actions, old)
			continue
		}
		actions = append(actions, &Active{Action: *a})
	}
	return actions
}

// Open makes the table keep its actions in a file in a folder; "" means only in memory. It makes the file if there is
// none. The actions in the file become active at once. Open adds the table's own actions to the file. For the same
// target, the newer action stays. If the file has another secret, the table's actions for keys are dropped, and a line
// in the log says so.
//
// Open returns an error, and changes nothing, if the folder is missing or there would be more than [MaxActions]
// actions.
func (t *Table) Open(folder string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	path := ""
	if folder != "" {
		path = filepath.Join(folder, FileName)
	}
	if path == t.file.path {
		return nil
	}
	if _, err := os.Stat(folder); path != "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s", folder)
	}
	before, secret, next, own := t.file, t.secret.Load(), t.next, t.list()
	t.file = file{path: path}
	var err error
	if len(own) > 0 {
		err = t.changeFile(nil, func(actions []*Active) ([]*Active, error) { return t.merge(actions, own, *secret) })
	} else if stored, readErr := t.file.read(); readErr != nil {
		err = readErr
	} else if stored != nil {
		t.publish(t.adopt(stored))
	} else if path != "" { // from now on all processes that use the folder have the same secret
		err = t.changeFile(nil, func(actions []*Active) ([]*Active, error) { return actions, nil })
	}
	if err != nil {
		t.file, t.next = before, next
		t.secret.Store(secret)
	}
	return err
}

// merge adds the table's own actions to the actions of the file. The parameter secret is the secret of the keys' ids in
// own.
func (t *Table) merge(actions, own []*Active, secret []byte) ([]*Active, error) {
	now, otherSecret := t.config.Now().UnixNano(), !bytes.Equal(secret, *t.secret.Load())
	for _, a := range own {
		i := slices.IndexFunc(actions, func(other *Active) bool { return other.Target == a.Target })
		switch {
		case !a.isActive(now), i >= 0 && !a.From.After(actions[i].From):
			continue
		case a.IsKey() && otherSecret:
			t.config.Log.Warn("action: it ends, because the file of actions has another secret for keys", "id", a.ID,
				"what", a.Action.String(), "file", t.file.path)
			continue
		case otherSecret, slices.ContainsFunc(actions, func(other *Active) bool { return other.ID == a.ID }):
			added := &Active{Action: a.Action}
			added.ID, t.next = t.next, t.next+1
			added.hits.Store(a.Hits())
			a = added
		}
		if i >= 0 {
			actions = slices.Delete(actions, i, i+1)
		}
		actions = append(actions, a)
	}
	if len(actions) > MaxActions {
		return nil, fmt.Errorf("%s: with the active ones there are %d actions: want at most %d: end some first", t.file.path, len(actions), MaxActions)
	}
	return actions, nil
}

// Forget removes the texts of keys from the table and its file. It is called when keys are no longer shown.
func (t *Table) Forget() error {
	hasText := func(a *Active) bool { return a.Text != "" }
	if !slices.ContainsFunc(t.List(), hasText) {
		return nil
	}
	return t.change(func(actions []*Active) ([]*Active, error) {
		for i, a := range actions {
			if hasText(a) {
				actions[i] = &Active{Action: a.Action}
				actions[i].hits.Store(a.Hits())
				actions[i].Text = ""
			}
		}
		return actions, nil
	})
}
