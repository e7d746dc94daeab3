package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/sharedfile"
	"github.com/weir-go/weir/shard"
)

// CopyShared copies debts from one file to another: from is the path of a shared table, to the path of the new file.
// The table may be in use. The new file can be a backup, or a table with other [MaxKeys], [Shards], [Overflow],
// [MaxQuota], [MaxDebt], [ChargeRefusals] or [Tiers]. Tiers change the numbers as [Limiter.SetPolicy] does. All other
// settings stay the same, except that a number of shards that [New] chose by MaxKeys is chosen again. Tokens that are
// taken while CopyShared runs may or may not count in the copy.
//
// In windows, a key's tokens count in a new window that begins with the copy. So the key may wait longer than before,
// or less if an earlier change of the length had made its window longer.
//
// The copy gets its name when it is complete. If a file with that name exists, CopyShared returns an error. If the copy
// has no room for some keys, its [Overflow] decides. CopyShared takes some hundred nanoseconds for each key. It needs
// Linux.
func CopyShared(from, to string, options ...Option) error {
	source, err := openDebts(from)
	if err != nil {
		return err
	}
	defer source.Close()
	fail := func(err error) error { return fmt.Errorf("engine: CopyShared to %q: %w", to, err) }
	config, err := source.config.forCopy(to, options)
	if err != nil {
		return err
	}
	policies, after, err := source.policySet().withTiers(config.tiers)
	if err != nil {
		return fail(err)
	}
	plan, err := policies.plan(nil, config.terms)
	if err == nil {
		_, err = after.plan(plan.Algorithm(), config.terms)
	}
	if err != nil {
		return fail(err)
	}
	layout, secret := config.table(plan), source.view.Secret()
	layout.Start = source.now()
	bytes, err := layout.SharedBytes()
	if err != nil {
		return fail(fmt.Errorf("MaxKeys(%d): %w", config.maxKeys, err))
	}
	err = sharedfile.Create(to, sharedfile.Spec{
		Fields: config.fields(policies), Bytes: bytes, Start: layout.Start, Secret: &secret,
		Begin: func(memory []byte) error {
			if err := layout.Begin(memory, policies.numbers()); err != nil {
				return err
			}
			table, err := shard.Map(layout, shard.Shared{Memory: memory, Owner: maker{}, Build: policies.builder(config.terms)})
			if err != nil {
				return err
			}
			start := func() int64 { return layout.Start }
			if _, err := source.copyDebts(table, config.terms, start); err != nil || slices.Equal(after.byTier, policies.byTier) {
				return err
			}
			table.Replace(after.numbers(), start) // no other process uses this table
			return nil
		},
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

func (c config) forCopy(to string, options []Option) (config, error) {
	before := c
	if c.usualShards() == c.shards {
		c.shards = 0 // the default number for the new size
	}
	for i, option := range options {
		if option == nil {
			return c, fmt.Errorf("engine: CopyShared to %q: option %d of %d is nil", to, i+1, len(options))
		}
		if err := option(&c); err != nil {
			return c, err
		}
	}
	if c.clock != before.clock || c.stableHash != before.stableHash || c.sharedPath != before.sharedPath || c.replacePolicy {
		return c, fmt.Errorf("engine: CopyShared to %q: the hash and the clock of a table stay, and it is no limiter: want "+
			"other options", to)
	}
	return c, nil
}

// withTiers returns the policies before and after a change of the tiers. The policies before already have the new
// number of tiers.
func (s policySet) withTiers(tiers []Policy) (before, after policySet, err error) {
	if tiers == nil {
		return s, s, nil
	}
	before = newPolicySet(s.byTier[0], tiers)
	before.base, before.bases = s.base, slices.Clone(before.byTier)
	before.quotaDebt, before.longestWindow, before.maxEstimate = s.quotaDebt, s.longestWindow, s.maxEstimate
	copy(before.byTier, s.byTier)
	copy(before.bases, s.bases)
	copy(before.highest, s.highest)
	after, err = before.withPolicies(append([]Policy{s.byTier[0]}, tiers...))
	return before, after, err
}

// RestoreShared copies debts from one file to another: from is the path of a copy by [CopyShared], to the path of the
// shared table. The table may be in use. After that, every key in the table owes at least what it owes in the copy. A
// debt that is in both files counts once, so a restore may be repeated. If the table's file does not exist,
// RestoreShared makes it. It needs Linux.
//
// If the policies of the two files differ, keys owe the same number of tokens of their tiers. Tokens taken in windows
// count in new windows that begin with the restore. Both files must have the same hash secret. A newly made file does
// not have it, so remove such a file first. If there is no room for some keys, RestoreShared restores all others and
// returns an error.
func RestoreShared(from, to string) error {
	if table, err := openShared(to); err == nil {
		_ = table.Close() // nothing was written
	} else if errors.Is(err, fs.ErrNotExist) {
		return CopyShared(from, to)
	} else {
		return err
	}
	source, err := openDebts(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := openDebts(to)
	if err != nil {
		return err
	}
	config, policies := target.config, *target.policySet()
	sameHash := source.view.Secret() == target.view.Secret() || config.stableHash && source.config.stableHash
	if err := target.Close(); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("engine: RestoreShared to %q: %w", to, err) }
	switch {
	case !sameHash:
		return fail(errors.New("hash: the file has another secret than the copy, so no key of the one is found in the other: " +
			"stop all processes, remove the file, and restore it then"))
	case config.clock == clockFunc:
		return fail(errors.New("time: it is a function's, which is not known here: want a file that no process uses, removed before"))
	}
	clock, err := newClock(config.clock, nil)
	if err != nil {
		return err
	}
	config.sharedPath = to
	plan, err := policies.plan(nil, config.terms)
	if err != nil {
		return fail(err)
	}
	layout := config.table(plan)
	layout.Start = clock.nanos()
	table, _, err := config.attach(layout, clock, policies)
	if err != nil {
		return err
	}
	lost, err := source.copyDebts(table, config.terms, clock.exactNanos)
	if err == nil && lost > 0 {
		err = fmt.Errorf("MaxKeys(%d): %d keys of the copy have no room, and owe nothing: want more", config.maxKeys, lost)
	}
	if err != nil {
		err = fail(err)
	}
	return errors.Join(err, config.file.Close())
}

type debts struct {
	*sharedTable
	config config
}

func openDebts(path string) (debts, error) {
	table, err := openShared(path)
	if err != nil {
		return debts{}, err
	}
	c, err := configOf(table.view.Fields())
	if err != nil {
		return debts{}, errors.Join(err, table.Close())
	}
	return debts{table, c}, nil
}

func (d *debts) policySet() (set *policySet) {
	_ = d.view.Read(func() { d.table.Plan() })
	latest := d.table.Known().Source().(*policySet).withLargestDebt(d.table)
	return &latest
}

// now returns the current time on the timeline of the table.
func (d *debts) now() (now int64) {
	_ = d.view.Read(func() {
		ok := false
		if now, ok = d.view.Now(); d.hasClockFunc {
			now = 0
		} else if !ok {
			now = time.Now().UnixNano()
		}
		now = max(now, d.table.Watermark())
	})
	return now
}

// copyDebts makes the keys of a table owe what they owe in d's table. If a policy changes meanwhile, it starts over,
// which is safe because a debt in both tables counts once. lost is the number of keys for which there was no room.
func (d *debts) copyDebts(table *shard.Table, terms terms, clock func() int64) (lost int, err error) {
	for done := false; !done && err == nil; {
		lost = 0
		faultErr := d.view.Read(func() { lost, done, err = d.copyDebtsUnder(table.Plan(), table, terms, clock) })
		err = errors.Join(err, faultErr)
	}
	return lost, err
}

// copyDebtsUnder is copyDebts under one plan of the given table. done is false if a plan has changed meanwhile.
func (d *debts) copyDebtsUnder(plan *shard.Plan, table *shard.Table, terms terms, clock func() int64) (lost int, done bool, err error) {
	from, to := d.policySet(), plan.Source().(*policySet)
	if from.base.Kind() != to.base.Kind() {
		return 0, false, fmt.Errorf("algorithm: the copy has %q, the file has %q", from.base.Kind(), to.base.Kind())
	}
	before := d.table.Plan().Algorithm()
	conversion, err := to.plan(before, terms)
	if err == nil {
		if bucket, ok := conversion.Bucket(); ok {
			if !bucket.HasPrices() { // the key word then says under which tier a debt is: R28
				from.quotaDebt = max(from.quotaDebt, slices.Max(from.highest))
			}
			err = from.checkRoom(bucket)
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("policy: what keys owe under %v cannot be told under %v: %w", from.byTier[0], to.byTier[0], err)
	}
	if err := retry(func() bool { return table.Remember(from.quotaDebt, clock) }); err != nil {
		return 0, false, err
	}
	table.AlignAs(d.table)
	done = d.table.Debts(d.now(), conversion, func(label, debt, token uint64) {
		switch table.Owe(label, clock(), debt, token, plan).Verdict {
		case shard.NoRoom, shard.Unrecorded:
			lost++
		}
	})
	return lost, done && table.Plan() == plan, nil
}

// A maker is the owner of a table to which no other process has attached yet.
type maker struct{}

func (maker) Claimant() uint64 { return 1 }
func (maker) Dead(uint64) bool { return false }
