package resp

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/cmd/internal/sealed"
	"github.com/weir-go/weir/cmd/internal/secretfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// Settings are what a reload may change. They must not be changed once they are in use: make others.
type Settings struct {
	// Limiter decides. It is one of [engine.TokenBuckets].
	Limiter *engine.Limiter
	// Formers are the previous limiters: what a key owes them is charged to Limiter when a command names the key. Nil
	// for none.
	Formers *live.Formers
	// Longest is the longest time in which one of its buckets may fill, for errors.
	Longest time.Duration
	// Limits are those that commands name, token buckets that Limiter takes. A name begins with a letter and has no
	// colon.
	Limits map[string]engine.Policy
	// Passwords are those that are good for AUTH; without any, no client needs one.
	Passwords Passwords
	// Negative is whether a negative quantity of CL.THROTTLE gives tokens back, as redis-cell does. Without it that is
	// an error.
	Negative bool
	// Holds make the ids of holds.
	Holds *Holds
	// Places are what is in flight; nil if nothing is counted so.
	Places *Places
	// IdleTimeout is how long a connection may wait for its next command, 0 for as long as it likes.
	IdleTimeout time.Duration
	// Leave is called when a batch that was decided by the settings is answered; nil for nothing.
	Leave func()
}

// Holds are what makes the ids of holds, and knows which were used. Uses outlive all Settings, or an id could be used
// twice.
type Holds struct {
	Sealer *sealed.Sealer
	Uses   *sealed.Uses
}

// NewHolds returns what makes and remembers up to so many ids that are used and have not expired. Its key is random, so
// ids are good for this process only. now is nil for the clock of the system.
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

// ReadPasswords reads a file with a password on each line, as [ParsePasswords] does. A file of more than 64 KiB is an
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

// ParsePasswords reads a password on each line: several are good at the same time, so that clients can change from one
// to another. Spaces around a password are not part of it, and empty lines are passed over. None, or more than 16, is
// an error.
func ParsePasswords(text string) (all Passwords, err error) {
	lines, err := secretfile.Lines(text, "password")
	for _, line := range lines {
		all = append(all, secretfile.HashOf([]byte(line)))
	}
	return all, err
}

// have reports whether a password is one of them.
func (p Passwords) have(text []byte) bool { return secretfile.Find(p, text) >= 0 }
