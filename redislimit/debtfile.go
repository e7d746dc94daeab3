package redislimit

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/redislimit/internal/journal"
	"github.com/weir-go/weir/redislimit/internal/lease"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// takeOverEvery is how often a limiter looks for files of processes that have ended.
const takeOverEvery = 5 * time.Second

// DebtFiles makes the limiter keep in a file what it owes the store: what the node's share has admitted, what requests
// cost beyond holds, and the overdraft of leases while the store is lost. The debt then outlives the process, however
// the process ends. The next limiter charges it to the store, or another limiter on this machine does so within five
// seconds.
//
// stem is what the paths of the files begin with. It is a full path whose folder exists and belongs to this user or
// root. Each limiter has a file of its own, whose name ends with .debts. The file contains the keys in clear text, and
// only its user may read it (0600). [Limiter.Close] removes it if nothing is owed. All limiters of the machine with the
// same stem must have the same name and store. It needs Linux; elsewhere [New] returns an error.
//
// What a share admits is in the file before the answer, so a killed process loses none of it. The overdraft of a lease
// that was made since the store was lost is written every 100 ms, so a killed process may lose the last 100 ms of it:
// at most the [Overdraft] of each key. For the first requests of a key that it had not asked the store about, it may
// lose a quarter of that. The system writes the file to the disk in its own time, so a loss of power may lose more.
// What would have come back since the last write to the file, by the machine's clock, is forgotten. A failed write is
// logged and tried again every 100 ms.
//
// If a limiter finds at its start that a key owed something, it takes as much from the node's share of that key.
func DebtFiles(stem string) Option {
	return func(c *config) error {
		if !filepath.IsAbs(stem) {
			return fmt.Errorf("redislimit: DebtFiles(%q): want a full path", stem)
		}
		c.debtFiles = stem
		return nil
	}
}

// A debtFile is the journal of a limiter and its tiers, as one of them has it. Its methods may be called of nil.
type debtFile struct {
	*journal.Journal
	tier    uint8             // 0 for the limiter itself
	leases  map[string]uint64 // what it says leases owe; of the goroutine that keeps the limiter
	next    int64             // when to look for other files, of that goroutine
	told    map[string]bool   // files that were logged and are left alone, of that goroutine after New
	isReady atomic.Bool       // New is over
}

// openDebts makes the file of a limiter, nil if it is to have none.
func (c *Client) openDebts(name string, d *design, a *agreement) (*debtFile, error) {
	if d.config.debtFiles == "" || d.limit.IsInFlight() {
		return nil, nil
	}
	identity := a.same + " name=" + name
	if d.limit.IsOfQuotas() {
		identity += numbers(d.policy, d.config.limit) // they say what the numbers of quotas mean
	}
	j, err := journal.Open(d.config.debtFiles, identity, func(err error) {
		c.tell(slog.LevelError, "the debt to the store cannot be written to its file",
			slog.String("name", name), slog.Any("error", err))
	})
	if err != nil {
		return nil, fmt.Errorf("redislimit: %s: the file of what it owes: %w", name, err)
	}
	return &debtFile{Journal: j, leases: map[string]uint64{}, told: map[string]bool{}}, nil
}

// of returns the file for a tier.
func (f *debtFile) of(tier int) *debtFile {
	if f == nil {
		return nil
	}
	return &debtFile{Journal: f.Journal, tier: uint8(tier), leases: map[string]uint64{}}
}

// close ends the file, which is left to the next process if anything is owed.
func (f *debtFile) close() {
	if f != nil {
		_ = f.Close() // what it could not write was logged
	}
}

// note returns the function that is called with changes; nil for none.
func (f *debtFile) note() func(owing, uint64) {
	if f == nil {
		return nil
	}
	return func(of owing, owed uint64) {
		f.Note(journal.Entry{Tier: f.tier, Tokens: of.numbers.Tokens, Units: of.numbers.Units, Key: of.key}, owed)
	}
}

// noteLease has the file say what a lease owes.
func (f *debtFile) noteLease(key string, debt uint64) {
	if debt == 0 {
		delete(f.leases, key)
	} else {
		f.leases[key] = debt
	}
	f.Note(journal.Entry{Tier: f.tier, IsLease: true, Key: key}, debt)
}

// keepDebts writes to the file what leases owe while the store is lost.
func (l *Limiter) keepDebts() {
	if l.debts != nil {
		l.noteLeases(false)
		l.debts.Mend()
	}
}

// takeOverFiles takes over files of processes that have ended.
func (l *Limiter) takeOverFiles() {
	f, now := l.debts, l.now()
	if f != nil && f.tier == 0 && f.isReady.Load() && now >= f.next {
		f.next = now + int64(takeOverEvery)
		l.takeOver(false)
	}
}

// noteLeases writes to the file what leases owe: all leases, or only those whose part of the store is lost and those
// that have an entry in the file. Without a loss, most leases owe something for the time of a call, again and again.
func (l *Limiter) noteLeases(all bool) {
	if l.leases == nil {
		return
	}
	for key := range l.debts.leases {
		if _, has := l.leases.Load(key); !has {
			l.debts.noteLease(key, 0)
		}
	}
	l.leases.Range(func(key string, held *lease.Lease) bool {
		_, debt := held.Held()
		if before := l.debts.leases[key]; before != debt && (before > 0 || all || l.isLost(key)) {
			l.debts.noteLease(key, debt)
		}
		return true
	})
}

// takeOver makes what ended processes owed the debts of this limiter and its tiers.
func (l *Limiter) takeOver(isStart bool) {
	err := l.debts.TakeOver(func(f journal.Former) bool {
		isOld := time.Since(f.Last) > l.longestDebt()
		switch {
		case f.Owed == nil:
			l.tellOnce(f.Path, "a file with a debt to the store is not taken over", f.Err)
			return false
		case isOld:
			l.client.tell(slog.LevelInfo, "the debt of an ended process has come back by time since", slog.String("file", f.Path))
			return true
		case len(f.Owed) > l.room():
			l.tellOnce(f.Path, "a file with a debt to the store waits until there is room", nil)
			return false
		}
		lost := 0
		for e, n := range f.Owed {
			if !l.tierOf(e.Tier).takeOverEntry(e, n, isStart) {
				lost++
			}
		}
		l.client.tell(slog.LevelInfo, "the debt of an ended process will be charged to the store",
			slog.String("file", f.Path), slog.Int("entries", len(f.Owed)))
		if lost > 0 || f.Err != nil {
			l.client.tell(slog.LevelError, "a part of an ended process's debt to the store is lost",
				slog.String("file", f.Path), slog.Int("entries", lost), slog.Any("error", f.Err))
		}
		return true
	})
	if err != nil {
		l.tellOnce(err.Error(), "files with debts to the store cannot be taken over", err)
	}
}

// tellOnce logs something about what once.
func (l *Limiter) tellOnce(what, text string, err error) {
	if !l.debts.told[what] && len(l.debts.told) < mostTold {
		l.debts.told[what] = true
		l.client.tell(slog.LevelWarn, text, slog.String("file", what), slog.Any("error", err))
	}
}

// longestDebt is the time in which all that a key may owe comes back.
func (l *Limiter) longestDebt() (longest time.Duration) {
	for _, l := range append([]*Limiter{l}, l.tiers...) {
		longest = max(longest, l.policy.Longest(), l.policy.Window())
	}
	return time.Duration(l.limit.MaxDebt(1)) * longest
}

// room returns for how many more keys the limiter, and each tier, has room.
func (l *Limiter) room() int {
	room := l.owed.Room()
	for _, tier := range l.tiers {
		room = min(room, tier.owed.Room())
	}
	return room
}

// tierOf returns the limiter of a tier. If the tier no longer exists, it returns the limiter of the limit itself, where
// a key is the same.
func (l *Limiter) tierOf(tier uint8) *Limiter {
	for _, t := range l.tiers {
		if t.debts.tier == tier {
			return t
		}
	}
	return l
}

// takeOverEntry makes an entry a debt of this limiter, and reports whether there was room. At a start it also takes the
// debt from the node's share.
func (l *Limiter) takeOverEntry(e journal.Entry, n uint64, isStart bool) bool {
	of := owing{e.Key, script.Quota{Tokens: e.Tokens, Units: e.Units}}
	if !l.limit.Holds(of.numbers) {
		of.numbers = script.Quota{} // the limit was changed since; tokens are tokens
	}
	n = min(n, l.limit.MaxDebt(max(of.numbers.Tokens, l.policy.Limit())))
	if isStart && !e.IsLease {
		l.spendShare(l, of, n)
	}
	return l.owed.Add(of, n)
}
