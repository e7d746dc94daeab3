package actions

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Table has the active actions. Make one with [New]. All methods are safe for concurrent use.
type Table struct {
	config  Config
	current atomic.Pointer[snapshot] // nil if there is no action
	hits    [3]atomic.Uint64         // by kind, in the order of Kinds
	Seen    Seen
	secret  atomic.Pointer[[]byte] // secret of the ids of keys

	mu   sync.Mutex
	next uint64 // the next id
	file file
}

// Config configures a table.
type Config struct {
	Now func() time.Time // nil for the clock of the system
	Log *slog.Logger     // gets a line for each action that begins or ends
}

// New returns a table without actions, which keeps them in memory until [Table.Open].
func New(c Config) *Table {
	if c.Now == nil {
		c.Now = time.Now
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	t := &Table{config: c, next: 1}
	t.secret.Store(&secret)
	t.Seen.refill()
	return t
}

// KeyID returns the ID of a key with this text.
func (t *Table) KeyID(text string) KeyID { return macOf(*t.secret.Load(), text) }

// List returns the active actions, the oldest first.
func (t *Table) List() (active []*Active) {
	if s := t.current.Load(); s != nil {
		now := t.config.Now().UnixNano()
		for _, a := range s.actions {
			if a.isActive(now) {
				active = append(active, a)
			}
		}
	}
	return active
}

// Left returns how long an action remains active.
func (t *Table) Left(a *Active) time.Duration { return max(a.Until.Sub(t.config.Now()), 0) }

// Hits returns how many requests the actions of a kind applied to, including ended actions.
func (t *Table) Hits(k Kind) uint64 { return t.hits[slices.Index(Kinds, k)].Load() }

// Add activates an action for a time, instead of any action for the same target. The caller sets Kind, Target, Text,
// Who and Why. When Add returns, the action is in the file. After an error nothing has changed.
func (t *Table) Add(a Action, duration time.Duration) (*Active, error) {
	a.From = t.config.Now().UTC().Truncate(time.Millisecond)
	if duration > Longest { // From.Add could overflow
		return nil, fmt.Errorf("for %v: want %v to %v", duration, Shortest, Longest)
	}
	a.Until = a.From.Add(duration)
	if err := a.check(); err != nil {
		return nil, err
	}
	added := &Active{Action: a}
	err := t.change(func(actions []*Active) ([]*Active, error) {
		added.ID = t.next
		remaining := slices.DeleteFunc(actions, func(old *Active) bool { return old.Target == a.Target })
		if len(remaining) >= MaxActions {
			return nil, fmt.Errorf("there are already %d actions, the maximum: end one first", MaxActions)
		}
		t.next++
		return append(remaining, added), nil
	})
	if err != nil {
		return nil, err
	}
	t.config.Log.Info("action: begins", "id", added.ID, "what", added.Action.String(), "until", a.Until, "who", a.Who, "why", a.Why)
	return added, nil
}

// ErrNone means that no active action has the given id.
var ErrNone = errors.New("there is no such action: it has ended")

// End ends an action. When End returns, the action is no longer in the file.
func (t *Table) End(id uint64, who string) (ended *Active, err error) {
	if err := checkText("who", who, maxWho); err != nil {
		return nil, err
	}
	err = t.change(func(actions []*Active) ([]*Active, error) {
		i := slices.IndexFunc(actions, func(a *Active) bool { return a.ID == id })
		if i < 0 {
			return nil, ErrNone
		}
		ended = actions[i]
		return slices.Delete(actions, i, i+1), nil
	})
	if err != nil {
		return nil, err
	}
	t.config.Log.Info("action: was ended", "id", id, "what", ended.Action.String(), "who", who, "hits", ended.Hits())
	return ended, nil
}

// Refresh forgets ended actions, and reads the changes of other processes from the file. Call it about once per second.
// Actions end on time even without Refresh.
func (t *Table) Refresh() {
	t.Seen.refill()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.config.Now().UnixNano()
	actions := t.list()
	if t.file.path != "" && t.file.isChanged() {
		if stored, err := t.file.read(); err != nil {
			t.file.warn(t.config.Log, err)
		} else if stored != nil {
			actions = t.adopt(stored)
		}
	}
	t.publish(t.dropEnded(actions, now))
}

func (t *Table) list() []*Active {
	if s := t.current.Load(); s != nil {
		return slices.Clone(s.actions)
	}
	return nil
}

func (t *Table) dropEnded(actions []*Active, now int64) []*Active {
	return slices.DeleteFunc(actions, func(a *Active) bool {
		if a.isActive(now) {
			return false
		}
		t.config.Log.Info("action: its time is over", "id", a.ID, "what", a.Action.String(), "who", a.Who, "hits", a.Hits())
		return true
	})
}

func (t *Table) publish(actions []*Active) {
	if s := t.current.Load(); s != nil && slices.Equal(s.actions, actions) || s == nil && len(actions) == 0 {
		return
	}
	t.current.Store(newSnapshot(actions))
}

// change replaces the list of actions. With a file, the new list is written first, so that the change survives a crash.
func (t *Table) change(update func([]*Active) ([]*Active, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changeFile(t.list(), update)
}

// changeFile is like change, but does not lock the table. It changes the list in the file. If there is no file, it
// changes the parameter actions.
func (t *Table) changeFile(actions []*Active, update func([]*Active) ([]*Active, error)) error {
	done, err := t.file.lock()
	if err != nil {
		return err
	}
	defer done()
	if stored, err := t.file.read(); err != nil {
		return err
	} else if stored != nil {
		actions = t.adopt(stored)
	}
	if actions, err = update(t.dropEnded(actions, t.config.Now().UnixNano())); err != nil {
		return err
	}
	if err := t.write(actions); err != nil {
		return err
	}
	t.publish(actions)
	return nil
}
