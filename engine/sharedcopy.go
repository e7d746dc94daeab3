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

// CopyShared makes a file with what the keys of another shared table owe, while that is in use. The options change
// what the copy is: [MaxKeys], [Shards], [Overflow], [MaxQuota], [MaxDebt], [ChargeRefusals] and [Tiers], whose numbers
// become those of the copy as by [Limiter.SetPolicy]. What no option changes stays. The exception is Shards: if the
// table has the number that [New] chooses for its keys, the copy has the number that New chooses for its own. The copy
// may be kept as a backup, or take the place of a table that needs another size or other options. The policy, the hash
// with its secret and the kind of clock stay. What is taken while CopyShared runs may be in the copy or not.
//
// The copy is complete before it has its name. If there is a file of that name, it is an error. If the copy has less
// room, its [Overflow] says what happens to keys. CopyShared takes some hundred nanoseconds a key. It is for Linux.
func CopyShared(from, to string, options ...Option) error {
	source, err := openDebts(from)
	if err != nil {
		return err
	}
	defer source.Close()
	fail := func(err error) error { return fmt.Errorf("engine: CopyShared to %q: %w", to, err) }
	c, err := source.config.copied(to, options)
	if err != nil {
		return err
	}
	policies, after, err := source.policies().withTiers(c.tiers)
	if err != nil {
		return fail(err)
	}
	plan, err := policies.plan(nil, c.terms)
	if err == nil {
		_, err = after.plan(plan.Algorithm(), c.terms)
	}
	if err != nil {
		return fail(err)
	}
	layout, secret := c.table(plan), source.view.Secret()
	layout.Start = source.now()
	bytes, err := layout.SharedBytes()
	if err != nil {
		return fail(fmt.Errorf("MaxKeys(%d): %w", c.maxKeys, err))
	}
	err = sharedfile.Create(to, sharedfile.Spec{
		Fields: c.fields(policies), Bytes: bytes, Start: layout.Start, Secret: &secret,
		Begin: func(memory []byte) error {
			if err := layout.Begin(memory, policies.numbers()); err != nil {
				return err
			}
			table, err := shard.Map(layout, shard.Shared{Memory: memory, Owner: maker{}, Build: policies.builder(c.terms)})
			if err != nil {
				return err
			}
			start := func() int64 { return layout.Start }
			if _, err := source.giveTo(table, c.terms, start); err != nil || slices.Equal(after.all, policies.all) {
				return err
			}
			table.Replace(after.numbers(), start) // nobody else has the table
			return nil
		},
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

// copied returns the configuration of a copy at a path, with options that change it.
func (c config) copied(to string, options []Option) (config, error) {
	was := c
	if c.usualShards() == c.shards {
		c.shards = 0 // as many as a table of the new size has
	}
	for i, option := range options {
		if option == nil {
			return c, fmt.Errorf("engine: CopyShared to %q: option %d of %d is nil", to, i+1, len(options))
		}
		if err := option(&c); err != nil {
			return c, err
		}
	}
	if c.clock != was.clock || c.stable != was.stable || c.shared != was.shared || c.replaces {
		return c, fmt.Errorf("engine: CopyShared to %q: the hash and the clock of a table stay, and it is no limiter: want "+
			"other options", to)
	}
	return c, nil
}

// withTiers returns the policies with as many tiers as there are in others, if these are not nil: those that there were
// with their numbers, and with room for what keys have taken by earlier ones. after is what they then change to.
func (ps policies) withTiers(tiers []Policy) (before, after policies, err error) {
	if tiers == nil {
		return ps, ps, nil
	}
	before = policiesOf(ps.all[0], tiers)
	before.base, before.last, before.quotas = ps.base, slices.Clone(before.all), ps.quotas
	copy(before.all, ps.all)
	copy(before.last, ps.last)
	copy(before.room, ps.room)
	after, err = before.changed(append([]Policy{ps.all[0]}, tiers...))
	return before, after, err
}

// RestoreShared makes every key of the shared table at a path owe at least what it owes in a copy ([CopyShared]),
// while the table is in use. What a key owes in both counts once, so a restore may be repeated. If the policies differ
// from those of the copy, it is as if they were set now ([Limiter.SetPolicy]): keys owe as many tokens of their tiers.
// RestoreShared makes the file if there is none. Both tables must hash by the same secret. A file that was made anew
// has another secret, and must be removed before. If some keys have no room in the table, which other keys may have
// taken, that is an error, and all others are restored. RestoreShared is for Linux.
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
	c, policies := target.config, *target.policies()
	same := source.view.Secret() == target.view.Secret() || c.stable && source.config.stable
	if err := target.Close(); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("engine: RestoreShared to %q: %w", to, err) }
	switch {
	case !same:
		return fail(errors.New("hash: the file has another secret than the copy, so no key of the one is found in the other: " +
			"stop all processes, remove the file, and restore it then"))
	case c.clock == clockFunc:
		return fail(errors.New("time: it is a function's, which is not known here: want a file that no process uses, removed before"))
	}
	clock, err := newClock(c.clock, nil)
	if err != nil {
		return err
	}
	c.shared = to
	plan, err := policies.plan(nil, c.terms)
	if err != nil {
		return fail(err)
	}
	layout := c.table(plan)
	layout.Start = clock.nanos()
	table, _, err := c.attach(layout, clock, policies)
	if err != nil {
		return err
	}
	lost, err := source.giveTo(table, c.terms, clock.surely)
	if err == nil && lost > 0 {
		err = fmt.Errorf("MaxKeys(%d): %d keys of the copy have no room, and owe nothing: want more", c.maxKeys, lost)
	}
	if err != nil {
		err = fail(err)
	}
	return errors.Join(err, c.file.Close())
}

// debts is a shared table that another one is to have the debts of.
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

// policies returns the present ones.
func (d *debts) policies() (p *policies) {
	_ = d.view.Read(func() { d.table.Plan() })
	known := d.table.Known().Source().(*policies).known(d.table)
	return &known
}

// now returns the present time on the timeline of the table, or where that would go on if nobody has attached since
// the machine was booted.
func (d *debts) now() (now int64) {
	_ = d.view.Read(func() {
		known := false
		if now, known = d.view.Now(); d.function {
			now = 0
		} else if !known {
			now = time.Now().UnixNano()
		}
		now = max(now, d.table.Watermark())
	})
	return now
}

// giveTo makes the keys of a table owe what they owe here, in tokens, as if the policies of the table were set here
// now. It returns how many of them have no record there. If a policy changes meanwhile, here or there, it begins again:
// what a key owes in both counts once.
func (d *debts) giveTo(table *shard.Table, terms terms, clock func() int64) (lost int, err error) {
	for done := false; !done && err == nil; {
		lost = 0
		faulted := d.view.Read(func() { lost, done, err = d.giveBy(table.Plan(), table, terms, clock) })
		err = errors.Join(err, faulted)
	}
	return lost, err
}

// giveBy is giveTo as long as a plan is that of the table. It is not done if that is another one by the end.
func (d *debts) giveBy(plan *shard.Plan, table *shard.Table, terms terms, clock func() int64) (lost int, done bool, err error) {
	from, to := d.policies(), plan.Source().(*policies)
	if from.base.kind() != to.base.kind() {
		return 0, false, fmt.Errorf("algorithm: the copy has %q, the file has %q", from.base.kind(), to.base.kind())
	}
	before := d.table.Plan().Algorithm()
	in, err := to.plan(before, terms)
	if err == nil {
		if bucket, ok := in.Bucket(); ok {
			err = from.fits(bucket)
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("policy: what keys owe under %v cannot be told under %v: %w", from.all[0], to.all[0], err)
	}
	if err := retried(func() bool { return table.Remember(from.quotas, clock) }); err != nil {
		return 0, false, err
	}
	done = d.table.Debts(d.now(), in, func(label, debt, token uint64) {
		switch table.Owe(label, clock(), debt, token, plan).Verdict {
		case shard.NoRoom, shard.Unrecorded:
			lost++
		}
	})
	return lost, done && table.Plan() == plan, nil
}

// A maker is the owner of a table that nobody else has yet. Seats are counted from 1 on, so no attachment has its
// number.
type maker struct{}

func (maker) Claimant() uint64 { return 1 }
func (maker) Dead(uint64) bool { return false }
