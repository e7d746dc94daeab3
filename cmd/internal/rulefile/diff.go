package rulefile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/limits/spec"
)

// Changes says what a reload must do with limiters and listeners. The other settings, such as matches, costs and
// timeouts, are simply read from the new file. When they change, no counts are lost.
type Changes struct {
	Rules   []RuleChange // in the order of the new file
	Removed []string     // names of removed rules, whose limiters must be closed

	// Opened has the listeners that are only in the new file, and Closed the listeners that are only in the old file.
	// [Listener.Equal] compares them. A listener in both files stays open, and its certificate is read again.
	Opened, Closed []Listener
	Admin          bool // the administrator's listener has changed
	Decide         bool // the listener for decisions has changed
	Redis          bool // the listener for Redis clients, or its settings, have changed

	// RedisTable says what happens to the keys of Redis clients. If it is Carry or Replace, RedisReason says why.
	RedisTable  Continuity
	RedisReason string

	// ChangedKeys has the keys of the file that have changed and for which Changes has no other field. The keys of a
	// changed rule are in RuleChange.ChangedKeys.
	ChangedKeys []string
}

// A RuleChange says what happens to the limiter of a rule.
type RuleChange struct {
	Name        string
	Limit       Continuity
	Reason      string // for Carry and Replace: the change that the limiter cannot make
	From        string // for Adjust, Carry and Replace: the previous policy
	To          string // the new policy
	Rekeyed     string // the change that gives some requests another key, whose bucket may be full; "" for none
	ChangedKeys []string
}

// Continuity says how a limiter continues.
type Continuity int

const (
	Keep    Continuity = iota // the limiter stays as it is
	Adjust                    // SetPolicy changes the limiter; what each key has used still counts
	Carry                     // there is a new limiter; what keys have used still counts (package limits/live)
	Replace                   // there is a new limiter; every bucket is full again
	Add                       // there was no limiter
)

// Diff compares two files. Rules are identified by name.
//
// [engine.CheckChange] decides whether a limiter accepts the new numbers, as if the limiter had been made with the old
// numbers. A limiter whose numbers have changed before may accept less. For example, a sliding log keeps the room that
// it had at first. So if SetPolicy returns an error, the caller must replace the limiter.
func Diff(before, after *File) *Changes {
	c := &Changes{
		Admin:       !reflect.DeepEqual(before.Admin, after.Admin),
		Decide:      !equal(before.Decide, after.Decide),
		Redis:       !reflect.DeepEqual(before.Redis, after.Redis),
		ChangedKeys: after.changedKeys(before),
	}
	c.RedisTable, c.RedisReason = after.Redis.compare(before.Redis)
	for i := range after.Rules {
		rule := &after.Rules[i]
		j := slices.IndexFunc(before.Rules, func(r Rule) bool { return r.Name == rule.Name })
		if j < 0 {
			c.Rules = append(c.Rules, RuleChange{Name: rule.Name, Limit: Add, To: rule.limits()})
			continue
		}
		change := Compare(&before.Rules[j], rule)
		change.ChangedKeys = rule.changedKeys(&before.Rules[j])
		if change.Limit != Replace {
			change.Rekeyed = rule.rekeyed(&before.Rules[j], &after.ClientIP, &before.ClientIP)
		}
		c.Rules = append(c.Rules, change)
	}
	for _, r := range before.Rules {
		if !slices.ContainsFunc(after.Rules, func(rule Rule) bool { return rule.Name == r.Name }) {
			c.Removed = append(c.Removed, r.Name)
		}
	}
	c.Opened = listenersOnlyIn(after.Listen, before.Listen)
	c.Closed = listenersOnlyIn(before.Listen, after.Listen)
	return c
}

// Compare returns what happens to the limiter of a rule.
func Compare(before, after *Rule) RuleChange {
	c := RuleChange{Name: after.Name, From: before.limits(), To: after.limits()}
	if c.Reason = after.reasonToReplace(before); c.Reason != "" {
		c.Limit = Replace
		return c
	}
	if !after.Counts() { // the limiter stays until the rule counts requests again
		if after.Constant != before.Constant {
			c.Limit = Adjust
		}
		return c
	}
	c.Reason = after.reasonToCarry(before)
	switch {
	case c.Reason != "":
		c.Limit = Carry
	case after.Constant != before.Constant || !slices.Equal(before.Policies(), after.Policies()):
		c.Limit = Adjust
	}
	return c
}

// Correct corrects a change that keeps the limiter. The parameter policies has the limiter's real policies. They can
// differ from the policies in the previous file, because another process may have set them in a state folder.
func (c *RuleChange) Correct(after *Rule, policies []engine.Policy) {
	if slices.Equal(policies, after.Policies()) {
		return
	}
	c.Limit = Adjust
	before := *after
	before.Policy = policies[0]
	if after.Tiers != nil && !after.ByQuota() {
		tiers := *after.Tiers
		tiers.Policies = policies[1:]
		before.Tiers = &tiers
	}
	c.From = before.limits()
}

// reasonToReplace returns why the counts of the previous rule cannot be used. If they can be used, it returns "".
func (r *Rule) reasonToReplace(before *Rule) string {
	inFlight := func(r *Rule) bool { return r.Policy.Algorithm() == engine.AlgorithmConcurrency }
	switch {
	case !r.Key.Equal(before.Key):
		return fmt.Sprintf("the key was %s and is %s", before.Key, r.Key)
	case r.Store == nil && before.Store != nil && r.Counts():
		return "it was kept in the store and is now only on this machine"
	case r.Store != nil && before.Store == nil && before.Counts():
		return "it was only on this machine and is now kept in the store"
	case r.Counts() && before.Counts() && !r.Store.Same(before.Store):
		return "the store is a different one"
	case r.Store != nil || inFlight(r) || inFlight(before) || before.State != "": // other processes may use the file
		return r.reasonToCarry(before)
	}
	return ""
}

// rekeyed returns the change that gives some requests another key, although the rule's key is the same. If there is no
// such change, it returns "".
func (r *Rule) rekeyed(before *Rule, ip, oldIP *ClientIP) string {
	m, old := &r.Match, &before.Match
	switch {
	case !r.Counts():
	case r.Key.Uses(SourceIP) && (ip.IPv4Prefix != oldIP.IPv4Prefix || ip.IPv6Prefix != oldIP.IPv6Prefix):
		return fmt.Sprintf("addresses were grouped by /%d (IPv4) and /%d (IPv6), and are grouped by /%d and /%d",
			oldIP.IPv4Prefix, oldIP.IPv6Prefix, ip.IPv4Prefix, ip.IPv6Prefix)
	case r.Key.Uses(SourcePath) && (m.KeepCase != old.KeepCase || m.KeepType != old.KeepType || !slices.EqualFunc(m.Paths, old.Paths,
		func(p, q reading.Path) bool { return p.String() == q.String() })):
		return "its key has the path, and a part of match that shortens or unites paths has changed"
	}
	return ""
}

// reasonToCarry returns why the limiter of the previous rule cannot be used. If the limiter can be used, it returns "".
func (r *Rule) reasonToCarry(before *Rule) string {
	switch {
	case r.Counts() != before.Counts():
		return fmt.Sprintf("the limit was %s and is %s", before.OwnLimit(), r.OwnLimit())
	case r.Spread != before.Spread:
		return "its bucket is " + map[bool]string{true: "divided among all processors now", false: "no longer divided among processors"}[r.Spread]
	case r.Policy.Algorithm() != before.Policy.Algorithm():
		return fmt.Sprintf("the algorithm was %s and is %s",
			spec.Name(before.Policy.Algorithm()), spec.Name(r.Policy.Algorithm()))
	case r.ByQuota() != before.ByQuota():
		return "each request brings its own limit" + map[bool]string{true: " now", false: " no longer"}[r.ByQuota()]
	case r.Store == nil && len(r.TierPolicies()) != len(before.TierPolicies()):
		return fmt.Sprintf("there were %d tiers and are %d", len(before.TierPolicies()), len(r.TierPolicies()))
	case r.Store == nil && r.MaxKeys != before.MaxKeys:
		return fmt.Sprintf("max_keys was %d and is %d", before.MaxKeys, r.MaxKeys)
	case r.Overflow != before.Overflow:
		return fmt.Sprintf("overflow was %v and is %v", before.Overflow, r.Overflow)
	}
	if r.Store != nil {
		oldPolicy, newPolicy := before.Policy, r.Policy
		if newPolicy.Algorithm() != engine.AlgorithmTokenBucket && (oldPolicy.Window() != newPolicy.Window() || oldPolicy.IsAligned() != newPolicy.IsAligned()) {
			return fmt.Sprintf("the store keeps limits with other windows separately: it was %v and is %v", oldPolicy, newPolicy)
		}
		return ""
	}
	if oldTiers, newTiers := before.limitedTiers(), r.limitedTiers(); r.State != "" && before.State != "" && !slices.Equal(oldTiers, newTiers) {
		return fmt.Sprintf("the tiers with limits were %q and are %q, in this order", oldTiers, newTiers)
	}
	if oldRoom, newRoom := before.room(), r.room(); oldRoom != newRoom {
		return fmt.Sprintf("limits of requests had room for %d tokens and now for %d", oldRoom, newRoom)
	}
	if r.State != before.State {
		return fmt.Sprintf("its file was %s and is %s", pathOrNone(before.State), pathOrNone(r.State))
	}
	if err := engine.CheckChange(before.Policies(), r.Policies()); err != nil {
		return "the limiter does not accept the new numbers: " + messageOf(err)
	}
	return ""
}

// pathOrNone returns a path, or "none" for an empty path.
func pathOrNone(path string) string {
	if path == "" {
		return "none"
	}
	return path
}

// listenersOnlyIn returns the listeners of the list a that are not in the list b.
func listenersOnlyIn(a, b []Listener) (listeners []Listener) {
	for _, l := range a {
		if !slices.ContainsFunc(b, l.Equal) {
			listeners = append(listeners, l)
		}
	}
	return listeners
}

// Equal reports whether all settings of the listeners are equal.
func (l Listener) Equal(other Listener) bool {
	return l.Address == other.Address && l.Mode == other.Mode && l.H2C == other.H2C && l.ProxyProtocol == other.ProxyProtocol &&
		l.ReusePort == other.ReusePort && equal(l.TLS, other.TLS)
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func (f *File) changedKeys(before *File) []string {
	s := f.section()
	return s.changedKeys(before.section())
}

// changedKeys returns the changed keys of the rule. It leaves out keys whose change needs another limiter.
func (r *Rule) changedKeys(before *Rule) []string {
	s := (&ruleText{Rule: *r}).section()
	return s.changedKeys((&ruleText{Rule: *before}).section())
}

// tierNames returns, as text, the parts of the tiers that are not in the limiter.
func (r *Rule) tierNames() []string {
	if r.Tiers == nil {
		return nil
	}
	names := append([]string{r.Tiers.Header}, r.Tiers.Values...)
	for _, c := range r.Tiers.Constants {
		names = append(names, c.String())
	}
	return append(names, r.tierLimits())
}

// Empty reports whether no limiter and no listener changes.
func (c *Changes) Empty() bool {
	return len(c.Removed) == 0 && len(c.Opened) == 0 && len(c.Closed) == 0 && !c.Admin && !c.Decide && !c.Redis &&
		!slices.ContainsFunc(c.Rules, func(r RuleChange) bool { return r.Limit != Keep })
}

// Lines returns one sentence for each change, for the log.
func (c *Changes) Lines() (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, r := range c.Rules {
		switch r.Limit {
		case Adjust:
			add("rule %s: %s, was %s; the tokens that a key has used still count, and what exceeds a lower limit "+
				"must come back first", r.Name, r.To, r.From)
		case Carry:
			add("rule %s: %s, was %s; it has a new limiter, because %s; what keys have used still counts", r.Name, r.To, r.From, r.Reason)
		case Replace:
			add("rule %s: starts over with full buckets, because %s", r.Name, r.Reason)
		case Add:
			add("rule %s: new, %s", r.Name, r.To)
		}
		if r.Rekeyed != "" {
			add("rule %s: some requests now have another key, whose bucket may be full: %s", r.Name, r.Rekeyed)
		}
		if len(r.ChangedKeys) > 0 {
			add("rule %s: changed: %s", r.Name, strings.Join(r.ChangedKeys, ", "))
		}
	}
	for _, name := range c.Removed {
		add("rule %s: gone", name)
	}
	for _, l := range c.Opened {
		add("listening on %s", l)
	}
	for _, l := range c.Closed {
		add("no longer listening on %s", l)
	}
	if c.Admin {
		add("the admin listener changes")
	}
	if c.Decide {
		add("the listener for decisions changes")
	}
	if c.Redis {
		add("the listener for clients of Redis changes")
	}
	switch c.RedisTable {
	case Carry:
		add("redis: it has a new table, because %s; what keys have used still counts", c.RedisReason)
	case Replace:
		add("redis: starts over with full buckets, because %s", c.RedisReason)
	case Keep, Adjust, Add:
	}
	if len(c.ChangedKeys) > 0 {
		add("changed: %s", strings.Join(c.ChangedKeys, ", "))
	}
	return lines
}
