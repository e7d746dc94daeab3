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

// takeOverEvery is how often a limiter looks for files of ended processes.
const takeOverEvery = 5 * time.Second

// DebtFiles makes the limiter keep its debt to the store in a file, so that the debt outlives the process, no matter
// how it ends. The debt consists of tokens that the node's share has admitted, and of costs of requests beyond their
// holds. While the store is lost, it also contains the overdraft of leases.
//
// When the process has ended, another limiter of this machine with the same stem charges the debt. A limiter that
// starts does so at once, and a running limiter within five seconds. docs/distributed.md says what a killed process or
// a loss of power may lose.
//
// stem is the beginning of the paths of the files. It is a full path whose folder exists and belongs to this user or
// root. All limiters of the machine with the same stem must have the same name and store. Each limiter has a file,
// whose name ends with .debts. The file contains the keys in clear text, and only the user of the process may read it
// (0600). If nothing is owed, [Limiter.Close] removes the file. DebtFiles needs Linux; on other systems [New] returns
// an error.
func DebtFiles(stem string) Option {
	return func(c *config) error {
		if !filepath.IsAbs(stem) {
			return fmt.Errorf("redislimit: DebtFiles(%q): want a full path", stem)
		}
		c.debtFiles = stem
		return nil
	}
}

// A debtFile connects a limiter, or one of its tiers, to their common journal. A nil debtFile does nothing.
type debtFile struct {
	*journal.Journal
	tier    uint8             // 0 for the limiter itself
	leases  map[string]uint64 // debts of leases in the journal; only for the background goroutine
	next    int64             // when to look for other files; only for the background goroutine
	logged  map[string]bool   // files that were logged and left alone; after New, only for the background goroutine
	isReady atomic.Bool       // New has returned
}

func (c *Client) openDebts(name string, d *design, a *agreement) (*debtFile, error) {
	if d.config.debtFiles == "" || d.limit.IsInFlight() {
		return nil, nil
	}
	identity := a.baseSettings + " name=" + name
	if d.limit.IsOfQuotas() {
		identity += numbers(d.policy, d.config.limit) // numbers of quotas depend on them
	}
	j, err := journal.Open(d.config.debtFiles, identity, func(err error) {
		c.logAttrs(slog.LevelError, "the debt to the store cannot be written to its file",
			slog.String("name", name), slog.Any("error", err))
	})
	if err != nil {
		return nil, fmt.Errorf("redislimit: %s: the file of what it owes: %w", name, err)
	}
	return &debtFile{Journal: j, leases: map[string]uint64{}, logged: map[string]bool{}}, nil
}

func (f *debtFile) forTier(tier int) *debtFile {
	if f == nil {
		return nil
	}
	return &debtFile{Journal: f.Journal, tier: uint8(tier), leases: map[string]uint64{}}
}

// close closes the file. If anything is owed, the file stays for the next process.
func (f *debtFile) close() {
	if f != nil {
		_ = f.Close() // write errors were logged already
	}
}

// recorder returns a function that must be called with each change of a debt. Without a file, it returns nil.
func (f *debtFile) recorder() func(debtID, uint64) {
	if f == nil {
		return nil
	}
	return func(id debtID, owed uint64) {
		f.Note(journal.Entry{Tier: f.tier, Tokens: id.numbers.Tokens, Units: id.numbers.Units, Key: id.key}, owed)
	}
}

func (f *debtFile) noteLease(key string, debt uint64) {
	if debt == 0 {
		delete(f.leases, key)
	} else {
		f.leases[key] = debt
	}
	f.Note(journal.Entry{Tier: f.tier, IsLease: true, Key: key}, debt)
}

func (l *Limiter) keepDebts() {
	if l.debtFile != nil {
		l.noteLeases(false)
		l.debtFile.Mend()
	}
}

func (l *Limiter) takeOverFiles() {
	f, now := l.debtFile, l.now()
	if f != nil && f.tier == 0 && f.isReady.Load() && now >= f.next {
		f.next = now + int64(takeOverEvery)
		l.takeOver(false)
	}
}

// noteLeases writes the debts of leases to the file. Unless includeBrief is true, it leaves out debts that usually last
// only until a call ends.
func (l *Limiter) noteLeases(includeBrief bool) {
	if l.leases == nil {
		return
	}
	for key := range l.debtFile.leases {
		if _, ok := l.leases.Load(key); !ok {
			l.debtFile.noteLease(key, 0)
		}
	}
	l.leases.Range(func(key string, keyLease *lease.Lease) bool {
		_, debt := keyLease.Balance()
		if before := l.debtFile.leases[key]; before != debt && (before > 0 || includeBrief || l.isLost(key)) {
			l.debtFile.noteLease(key, debt)
		}
		return true
	})
}

func (l *Limiter) takeOver(isStart bool) {
	err := l.debtFile.TakeOver(func(f journal.Leftover) bool {
		isOld := time.Since(f.Last) > l.longestDebt()
		switch {
		case f.Owed == nil:
			l.logOnce(f.Path, "a file with a debt to the store is not taken over", f.Err)
			return false
		case isOld:
			l.client.logAttrs(slog.LevelInfo, "the debt of an ended process has come back by time since", slog.String("file", f.Path))
			return true
		case len(f.Owed) > l.room():
			l.logOnce(f.Path, "a file with a debt to the store waits until there is room", nil)
			return false
		}
		lost := 0
		for e, n := range f.Owed {
			if !l.tierOf(e.Tier).takeOverEntry(e, n, isStart) {
				lost++
			}
		}
		l.client.logAttrs(slog.LevelInfo, "the debt of an ended process will be charged to the store",
			slog.String("file", f.Path), slog.Int("entries", len(f.Owed)))
		if lost > 0 || f.Err != nil {
			l.client.logAttrs(slog.LevelError, "a part of an ended process's debt to the store is lost",
				slog.String("file", f.Path), slog.Int("entries", lost), slog.Any("error", f.Err))
		}
		return true
	})
	if err != nil {
		l.logOnce(err.Error(), "files with debts to the store cannot be taken over", err)
	}
}

// logOnce logs an error about a file once for each file, and for at most maxLogged files.
func (l *Limiter) logOnce(file, text string, err error) {
	if !l.debtFile.logged[file] && len(l.debtFile.logged) < maxLogged {
		l.debtFile.logged[file] = true
		l.client.logAttrs(slog.LevelWarn, text, slog.String("file", file), slog.Any("error", err))
	}
}

// longestDebt returns the time in which the largest debt of a key comes back.
func (l *Limiter) longestDebt() (longest time.Duration) {
	for _, l := range append([]*Limiter{l}, l.tiers...) {
		longest = max(longest, l.policy.Longest(), l.policy.Window())
	}
	return time.Duration(l.limit.MaxDebt(1)) * longest
}

// room returns the number of further keys for which the limiter, and each of its tiers, can note debts.
func (l *Limiter) room() int {
	room := l.debts.Room()
	for _, tier := range l.tiers {
		room = min(room, tier.debts.Room())
	}
	return room
}

// tierOf returns the limiter of a tier. For a missing tier, it returns the limit's own limiter, which has the same
// keys.
func (l *Limiter) tierOf(tier uint8) *Limiter {
	for _, t := range l.tiers {
		if t.debtFile.tier == tier {
			return t
		}
	}
	return l
}

// takeOverEntry adds an entry of another file to the debts of this limiter, and reports whether there was room. At the
// start, it also takes the tokens from the node's share.
func (l *Limiter) takeOverEntry(e journal.Entry, n uint64, isStart bool) bool {
	id := debtID{e.Key, script.Quota{Tokens: e.Tokens, Units: e.Units}}
	if !l.limit.Accepts(id.numbers) {
		id.numbers = script.Quota{} // the limit has changed: keep the number of tokens
	}
	n = min(n, l.limit.MaxDebt(max(id.numbers.Tokens, l.policy.Limit())))
	if isStart && !e.IsLease {
		l.spendShare(l, id, n)
	}
	return l.debts.Add(id, n)
}
