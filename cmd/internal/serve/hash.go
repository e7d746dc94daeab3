package serve

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/limits/quotas"
)

// progressEvery is the time between two log lines while a hash is read for a new rule file.
const progressEvery = 10 * time.Second

// readHashes reads the limits of keys from hashes in the store. If a hash cannot be read, a server does not start. A
// reload fails, unless the previous rule read the hash in the same way. In that case the previous limits stay active.
//
// Each answer of the store has a timeout, but reading a complete hash has none.
func (s *Server) readHashes(g, before *generation) error {
	g.hashContext, g.stopHashes = context.WithCancel(s.life.base)
	var readHash rules.Hash // does not refer to g, because a table may outlive it
	if g.store != nil {
		readHash = g.store.Value.Hash
	}
	for _, rule := range g.rules {
		name := rule.Name // does not refer to the rule, because the table may outlive it
		table, err := rule.ReadHash(s.life.base, progress(readHash, time.Now, func(fields int) {
			s.config.Log.Info("limits are being read", "rule", name, "fields", fields)
		}))
		if err != nil {
			if table = previousHash(g, before, rule); table == nil {
				return err
			}
			rule.UseHash(table)
			s.logHashError(rule, err)
		} else if table != nil {
			s.logQuotas(rule)
		}
		if table != nil {
			g.hashes = append(g.hashes, hash{rule, table})
		}
	}
	return nil
}

// progress returns a function that reads a hash with the function read. About every [progressEvery], it calls report
// with the number of fields that were read so far.
func progress(read rules.Hash, now func() time.Time, report func(fields int)) rules.Hash {
	return func(ctx context.Context, name string, yield func(field, value string) error) error {
		fields, last := 0, now()
		return read(ctx, name, func(field, value string) error {
			if fields++; fields%1000 == 0 && now().Sub(last) >= progressEvery {
				last = now()
				report(fields)
			}
			return yield(field, value)
		})
	}
}

// A hash is the table of limits of one rule. The generation reads it again at intervals.
type hash struct {
	rule  *rules.Rule
	table *quotas.Live
}

// previousHash returns the table that the previous generation has for the rule. It returns nil if a new table would be
// read in another way.
func previousHash(g, before *generation, rule *rules.Rule) *quotas.Live {
	if g.store != before.store || g.file.ClientIP != before.file.ClientIP {
		return nil
	}
	i := slices.IndexFunc(before.hashes, func(h hash) bool {
		return h.rule.Name == rule.Name && h.rule.Quota.Same(rule.Quota)
	})
	if i < 0 {
		return nil
	}
	return before.hashes[i].table
}

func (s *Server) followHashes(g *generation) {
	for _, h := range g.hashes {
		go h.table.Follow(g.hashContext, h.rule.Quota.Every, func(t *quotas.Table, err error) {
			if err != nil {
				s.logHashError(h.rule, err)
				return
			}
			s.logQuotas(h.rule)
		})
	}
}

func (s *Server) logHashError(rule *rules.Rule, err error) {
	s.config.Log.Warn("limits not read: the previous ones stay active", "rule", rule.Name, "from", rule.Quota.From(),
		"err", strings.TrimPrefix(err.Error(), "redislimit: "))
}

func hasHash(f *rulefile.File) bool {
	return slices.ContainsFunc(f.Rules, func(r rulefile.Rule) bool { return r.Quota != nil && r.Quota.Hash != "" })
}
