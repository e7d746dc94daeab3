package resp

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/cmd/internal/secretfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// Settings are the settings that a reload may change. They must not be changed while they are in use: make new ones.
type Settings struct {
	// Limiter decides. Its policy is from [engine.TokenBuckets].
	Limiter *engine.Limiter
	// Formers are the previous limiters: the debt of a key there is charged to Limiter when a command names the key.
	// nil if there are none.
	Formers *live.Formers
	// Longest is the longest time in which a bucket of Limiter may fill. Errors mention it.
	Longest time.Duration
	// Limits are the limits that commands can name: token buckets for Limiter, and others, which have Tables. A name
	// begins with a letter and has no colon.
	Limits map[string]engine.Policy
	// Tables are the tables of limits that have their own, by the names of the limits. Their keys have the same names
	// as in Limiter.
	Tables map[string]Table
	// Passwords are the valid passwords for AUTH. Without any, no client needs one.
	Passwords Passwords
	// Negative allows a negative quantity in CL.THROTTLE, which gives tokens back, as in redis-cell. Otherwise a
	// negative quantity is an error.
	Negative bool
	// Holds make the ids of holds.
	Holds *Holds
	// Places counts requests in flight; nil if commands cannot do that.
	Places *Places
	// IdleTimeout is how long a connection may wait for its next command; 0 for no bound.
	IdleTimeout time.Duration
	// Leave is called when a batch that these settings decided has been answered; nil for nothing.
	Leave func()
}

// A Table has the keys of one limit.
type Table struct {
	Limiter *engine.Limiter
	Formers *live.Formers // previous limiters, whose keys' debts it takes over
}

// Stats returns the sums over all tables: keys, slots, memory, and the counts of keys without room.
func (s *Settings) Stats() engine.Stats {
	all := s.Limiter.Stats()
	for _, t := range s.Tables {
		one := t.Limiter.Stats()
		all.Keys, all.Slots, all.Bytes = all.Keys+one.Keys, all.Slots+one.Slots, all.Bytes+one.Bytes
		all.Evictions, all.NoRoom = all.Evictions+one.Evictions, all.NoRoom+one.NoRoom
	}
	return all
}

// Holds makes the ids of holds, and remembers which were used. Uses outlives all Settings, because an id could
// otherwise be used twice.
type Holds struct {
	Sealer *sealed.Sealer
	Uses   *sealed.Uses
}

// NewHolds returns Holds with room for ids ids that are used and have not expired. The key is random, so ids are valid
// for this process only. now is nil for the system's clock.
func NewHolds(ids int, now func() time.Time, options ...engine.Option) (*Holds, error) {
	uses, err := sealed.NewUses(sealed.MaxLifetime, ids, options...)
	if err != nil {
		return nil, err
	}
	uses.Usual = sealed.DefaultLifetime
	if now != nil {
		uses.WithClock(now)
	}
	return &Holds{sealed.New("holds of the door for clients of Redis"), uses}, nil
}

// Passwords are kept as hashes, so that comparing them takes the same time for every wrong one.
type Passwords []secretfile.Hash

// ReadPasswords reads a file with one password on each line, as [ParsePasswords] does. A file of more than 64 KiB is an
// error.
func ReadPasswords(name string) (Passwords, error) {
	text, err := secretfile.Read(name, "password")
	if err != nil {
		return nil, err
	}
	all, err := ParsePasswords(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// ParsePasswords reads one password on each line. All of them are valid, so that clients can change from one to
// another. Spaces around a password are not part of it, and empty lines are skipped. No password, or more than 16, is
// an error.
func ParsePasswords(text string) (all Passwords, err error) {
	lines, err := secretfile.Lines(text, "password")
	for _, line := range lines {
		all = append(all, secretfile.HashOf([]byte(line)))
	}
	return all, err
}

// have reports whether a password is valid.
func (p Passwords) have(text []byte) bool { return secretfile.Find(p, text) >= 0 }
