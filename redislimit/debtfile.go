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

// DebtFiles makes the limiter keep its debt to the store in a file. The debt consists of the tokens that the node's
// share has admitted, the costs of requests beyond their holds, and the overdraft of leases while the store is lost.
// With the file, the debt outlives the process, no matter how the process ends. The next limiter that starts on this
// machine charges the debt to the store. If another limiter with the same stem is already running on this machine, that
// limiter charges the debt within five seconds.
//
// The parameter stem is the beginning of the paths of the files. It is a full path whose folder exists and belongs to
// this user or root. Each limiter has a separate file, whose name ends with .debts. The file contains the keys in clear
// text, and only the user of the process may read it (0600). [Limiter.Close] removes the file if nothing is owed. All
// limiters of the machine with the same stem must have the same name and store. DebtFiles needs Linux; on other systems
// [New] returns an error.
//
// The tokens that a share admits are written to the file before the request is answered, so a killed process loses none
// of them. The overdrafts of leases are written every 100 ms while the store is lost. So a killed process may lose the
// overdrafts of the last 100 ms, which are at most the [Overdraft] of each key. It may also lose up to a quarter of the
// Overdraft of a key without a lease. These are the tokens of the key's first requests, about which the store was not
// asked. The operating system decides when it writes the file to the disk, so a loss of power may lose more. When a
// limiter takes over a debt, it subtracts the tokens that have come back since the last write to the file, by the
// machine's clock. A failed write is logged and tried again every 100 ms.
//
// If a limiter finds the debt of a key at its start, it also takes that many tokens from the node's share of the key,
// unless the debt is the overdraft of a lease.
func DebtFiles(stem string) Option {
	return func(c *config) error {
		if !filepath.IsAbs(stem) {
			return fmt.Errorf("redislimit: DebtFiles(%q): want a full path", stem)
		}
		c.debtFiles = stem
		return nil
	}
}

// A debtFile gives a limiter or one of its tiers access to the limiter's journal. The limiter and all its tiers use the
// same journal. A nil debtFile does nothing.
type debtFile struct {
	*journal.Journal
	tier    uint8             // 0 for the limiter itself
	leases  map[string]uint64 // what leases owe, as written in the journal; only used by the background goroutine
	next    int64             // when to look for other files; only used by the background goroutine
	told    map[string]bool   // files that were logged and left alone; after New, only used by the background goroutine
	isReady atomic.Bool       // New has returned
}

// openDebts opens the file of a limiter. It returns nil without [DebtFiles].
func (c *Client) openDebts(name string, d *design, a *agreement) (*debtFile, error) {
	if d.config.debtFiles == "" || d.limit.IsInFlight() {
		return nil, nil
	}
	identity := a.same + " name=" + name
	if d.limit.IsOfQuotas() {
		identity += numbers(d.policy, d.config.limit) // because the numbers of quotas depend on the limit's numbers
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

// of returns the debtFile of a tier.
func (f *debtFile) of(tier int) *debtFile {
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

// note returns the function to call with each change of a debt, or nil if there is no file.
func (f *debtFile) note() func(owing, uint64) {
	if f == nil {
		return nil
	}
	return func(of owing, owed uint64) {
		f.Note(journal.Entry{Tier: f.tier, Tokens: of.numbers.Tokens, Units: of.numbers.Units, Key: of.key}, owed)
	}
}

// noteLease writes the debt of a lease to the file.
func (f *debtFile) noteLease(key string, debt uint64) {
	if debt == 0 {
		delete(f.leases, key)
	} else {
		f.leases[key] = debt
	}
	f.Note(journal.Entry{Tier: f.tier, IsLease: true, Key: key}, debt)
}

// keepDebts writes the debts of leases to the file while the store is lost.
func (l *Limiter) keepDebts() {
	if l.debts != nil {
		l.noteLeases(false)
		l.debts.Mend()
	}
}

// takeOverFiles takes over the files of ended processes if it is time to look for them.
func (l *Limiter) takeOverFiles() {
	f, now := l.debts, l.now()
	if f != nil && f.tier == 0 && f.isReady.Load() && now >= f.next {
		f.next = now + int64(takeOverEvery)
		l.takeOver(false)
	}
}

// noteLeases writes the debts of leases to the file. If the parameter all is false, it writes only leases whose part of
// the store is lost, and leases that have an entry in the file. It leaves out the other leases. The reason is that
// while the store answers, most leases often owe something for a short time, until a call ends.
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

// takeOver adds the debts of ended processes to those of this limiter and its tiers.
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

// tellOnce logs the text and the error about a file. It does so only once for each file, and for at most mostTold
// files.
func (l *Limiter) tellOnce(what, text string, err error) {
	if !l.debts.told[what] && len(l.debts.told) < mostTold {
		l.debts.told[what] = true
		l.client.tell(slog.LevelWarn, text, slog.String("file", what), slog.Any("error", err))
	}
}

// longestDebt returns the time in which the largest debt of a key comes back.
func (l *Limiter) longestDebt() (longest time.Duration) {
	for _, l := range append([]*Limiter{l}, l.tiers...) {
		longest = max(longest, l.policy.Longest(), l.policy.Window())
	}
	return time.Duration(l.limit.MaxDebt(1)) * longest
}

// room returns for how many more keys the limiter and each of its tiers can note debts.
func (l *Limiter) room() int {
	room := l.owed.Room()
	for _, tier := range l.tiers {
		room = min(room, tier.owed.Room())
	}
	return room
}

// tierOf returns the limiter of a tier. If the tier no longer exists, it returns the limit's own limiter, which has the
// same keys.
func (l *Limiter) tierOf(tier uint8) *Limiter {
	for _, t := range l.tiers {
		if t.debts.tier == tier {
			return t
		}
	}
	return l
}

// takeOverEntry adds an entry to the debts of this limiter, and reports whether there was room. If isStart is true, it
// also takes the debt from the node's share.
func (l *Limiter) takeOverEntry(e journal.Entry, n uint64, isStart bool) bool {
	of := owing{e.Key, script.Quota{Tokens: e.Tokens, Units: e.Units}}
	if !l.limit.Holds(of.numbers) {
		of.numbers = script.Quota{} // the limit has changed since then: keep the number of tokens
	}
	n = min(n, l.limit.MaxDebt(max(of.numbers.Tokens, l.policy.Limit())))
	if isStart && !e.IsLease {
		l.spendShare(l, of, n)
	}
	return l.owed.Add(of, n)
}
