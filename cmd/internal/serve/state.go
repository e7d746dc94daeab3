package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/live"
)

// newLimiter makes the limiter of a rule. It logs the state of the limiter's file.
func (s *Server) newLimiter(rule *rulefile.Rule) (*live.Limiter, error) {
	if rule.Spread {
		bucket, err := engine.NewSpread(rule.Policy, s.config.LimiterOptions...)
		if err != nil {
			return nil, err
		}
		return live.NewSpread(bucket), nil
	}
	_, err := os.Lstat(rule.State)
	isNew := errors.Is(err, fs.ErrNotExist)
	limiter, err := rule.NewLimiter(append(rule.StateOptions(), s.config.LimiterOptions...)...)
	if err == nil && rule.State != "" {
		s.logState(rule.State, s.config.Log.With("rule", rule.Name, "file", rule.State), rule, isNew)
	}
	if err != nil {
		return nil, err
	}
	return live.New(limiter), nil
}

// newRedisLimiter makes the limiter of Redis clients. It logs the state of the limiter's file.
func (s *Server) newRedisLimiter(redis *rulefile.Redis) (*engine.Limiter, error) {
	_, err := os.Lstat(redis.State)
	isNew := errors.Is(err, fs.ErrNotExist)
	limiter, err := redis.NewLimiter(append(redis.StateOptions(), s.config.LimiterOptions...)...)
	if err == nil && redis.State != "" {
		s.logState(redis.State, s.config.Log.With("listener", "redis", "file", redis.State), redis, isNew)
	}
	return limiter, err
}

// A stateOwner is a rule or a Redis listener. It may have a file in the state folder.
type stateOwner interface {
	OtherLayouts() []string
	FormerStates() []string
}

// logState logs whether the file of an owner is new, and how many of its keys owe something.
func (s *Server) logState(path string, log *slog.Logger, owner stateOwner, isNew bool) {
	table, err := engine.ReadShared(path)
	if err != nil { // not expected, because the limiter uses the file
		log.Warn("state: cannot look into the file", "err", err)
		return
	}
	status := "found"
	if isNew {
		status = "begun"
		if layouts := owner.OtherLayouts(); len(layouts) > 0 {
			log.Warn("state: the previous file has the layout of another version of weir: every bucket is full",
				"other", strings.Join(layouts, " "))
		}
		if states := owner.FormerStates(); len(states) > 0 {
			log.Warn("state: a rule of this name has counted in another file, with a different key, algorithm, list "+
				"of tiers, quota, period, zone or rules of the zone, max_keys, longest or overflow: every bucket is full", "other", strings.Join(states, " "))
		}
	}
	log.Info("state: "+status, "indebted", table.Indebted, "processes", len(table.Attached))
}

// logUnusedStates logs files in the state folder that belong to no rule of this server.
func (s *Server) logUnusedStates(file *rulefile.File) {
	if unused := file.UnusedStates(); len(unused) > 0 {
		s.config.Log.Info("state: these files belong to no rule; weir does not remove them", "files", strings.Join(unused, " "))
	}
}
