package resp

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/cmd/internal/secretfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// Settings has the settings that a reload may change. A reload makes new Settings. They must not be changed while in
// use.
type Settings struct {
	// Limiter decides about commands. Its policy is from [engine.TokenBuckets].
	Limiter *engine.Limiter
	// Formers has the previous limiters, or is nil. When a command names a key, Limiter charges the key with what it
	// owes in the previous limiters.
	Formers *live.Formers
	// Longest is the longest time that a bucket of Limiter may take to fill. Errors mention it.
	Longest time.Duration
	// Limits has the limits that commands can name. Token buckets are in Limiter, and limits with another algorithm are
	// in Tables. A name begins with a letter and has no colon.
	Limits map[string]engine.Policy
	// Tables has the limits that have a separate table, by name. A key has the same name in its table as in Limiter.
	Tables map[string]Table
	// Passwords has the valid passwords for AUTH. If there are none, clients do not need a password.
	Passwords Passwords
	// Negative allows a negative quantity in CL.THROTTLE. As in redis-cell, it gives tokens back. If Negative is false,
	// a negative quantity is an error.
	Negative bool
	// Holds makes the ids of holds.
	Holds *Holds
	// Places counts requests in flight. It is nil if they are not counted.
	Places *Places
	// IdleTimeout is how long a connection may wait for its next command. 0 means without a bound.
	IdleTimeout time.Duration
	// Leave is called when a batch that used these settings has been answered. It may be nil.
	Leave func()
}

// A Table has the keys of one limit.
type Table struct {
	Limiter *engine.Limiter
	Formers *live.Formers // previous limiters, whose debts are charged to Limiter
}

// Stats returns the statistics of all tables, added up.
func (s *Settings) Stats() engine.Stats {
	total := s.Limiter.Stats()
	for _, t := range s.Tables {
		stats := t.Limiter.Stats()
		total.Keys, total.Slots, total.Bytes = total.Keys+stats.Keys, total.Slots+stats.Slots, total.Bytes+stats.Bytes
		total.Evictions, total.NoRoom = total.Evictions+stats.Evictions, total.NoRoom+stats.NoRoom
	}
	return total
}

// Holds makes the ids of holds, and remembers which ids were used. Its field Uses must outlive all Settings. Otherwise,
// after a reload, an id could be used once more.
type Holds struct {
	Sealer *sealed.Sealer
	Uses   *sealed.Uses
}

// NewHolds returns Holds with room for a number of used ids that have not expired. The key is random, so ids are valid
// only in this process. The time comes from the function in the parameter now. If it is nil, the time comes from the
// system's clock.
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

// Passwords has the hashes of passwords. Hashes are compared, so that a comparison takes the same time for every wrong
// password.
type Passwords []secretfile.Hash

// ReadPasswords reads a file as [ParsePasswords] does. It returns an error if the file has more than 64 KiB.
func ReadPasswords(name string) (Passwords, error) {
	text, err := secretfile.Read(name, "password")
	if err != nil {
		return nil, err
	}
	passwords, err := ParsePasswords(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return passwords, nil
}

// ParsePasswords parses passwords, one per line. It removes spaces around a password, and skips empty lines. All
// passwords are valid, so that clients can change from one to the next. It returns an error if there are none, or more
// than 16.
func ParsePasswords(text string) (passwords Passwords, err error) {
	lines, err := secretfile.Lines(text, "password")
	for _, line := range lines {
		passwords = append(passwords, secretfile.HashOf([]byte(line)))
	}
	return passwords, err
}

func (p Passwords) match(text []byte) bool { return secretfile.Find(p, text) >= 0 }
