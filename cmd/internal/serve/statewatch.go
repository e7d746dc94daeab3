package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weir-go/weir/engine"
)

// stateInterval is the time between two checks of state files. It equals the sweep interval, because a sweep detects
// whether a file is lost.
const stateInterval = engine.DefaultSweepInterval

// stateSeen is the last logged state of a rule's file.
type stateSeen struct {
	lost   string          // why the file is no longer at its path; "" if it is
	limits []engine.Policy // limits that another process has set; nil if they are the limits in the rule file
}

func (s *Server) watchStates(ctx context.Context) {
	ticker := time.NewTicker(stateInterval)
	defer ticker.Stop()
	for seen := map[string]stateSeen{}; ; s.lookAtStates(seen) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// lookAtStates logs what has changed since the last check. A file may have been removed, moved or replaced, or another
// process may have changed its limits.
func (s *Server) lookAtStates(seen map[string]stateSeen) {
	g := s.enter()
	if g == nil {
		return
	}
	defer g.leave()
	for i := range g.file.Rules {
		if rule := &g.file.Rules[i]; rule.State != "" {
			log := s.config.Log.With("rule", rule.Name, "file", rule.State)
			seen[rule.State] = lookAt(g.limiters[rule.Name].Limiter, rule.Policies(), log, seen[rule.State])
		}
	}
	if redis := g.file.Redis; redis != nil && redis.State != "" {
		log := s.config.Log.With("listener", "redis", "file", redis.State)
		seen[redis.State] = lookAt(g.redisTable.Limiter, []engine.Policy{redis.Policy()}, log, seen[redis.State])
	}
}

// lookAt checks the file of one limiter. The parameter want has the policies in the rule file.
func lookAt(limiter *engine.Limiter, want []engine.Policy, log *slog.Logger, before stateSeen) (now stateSeen) {
	if err := limiter.Stats().FileLost; err != nil {
		now.lost = err.Error()
	}
	if has := policiesOf(limiter, len(want)); !slices.Equal(has, want) {
		now.limits = has
	}
	switch {
	case now.lost != before.lost && now.lost != "":
		log.Error("state: the file was removed, moved or replaced: from now on its processes and new ones count separately", "err", now.lost)
	case now.lost != before.lost:
		log.Info("state: the file is at its path again")
	}
	switch {
	case slices.Equal(now.limits, before.limits):
	case now.limits != nil:
		log.Warn("state: another process has changed the limits in the file", "rule_file", fmt.Sprint(want),
			"in_force", fmt.Sprint(now.limits))
	default:
		log.Info("state: the limits of the file are those of the rule file again")
	}
	return now
}
