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

// loggedState is the last logged state of a rule's file.
type loggedState struct {
	lostReason string          // why the file is no longer at its path; "" if it is
	limits     []engine.Policy // limits that another process has set; nil if they are the limits in the rule file
}

func (s *Server) watchStates(ctx context.Context) {
	ticker := time.NewTicker(stateInterval)
	defer ticker.Stop()
	for logged := map[string]loggedState{}; ; s.checkStates(logged) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// checkStates logs what has changed since the last check. A file may have been removed, moved or replaced, or another
// process may have changed its limits.
func (s *Server) checkStates(logged map[string]loggedState) {
	g := s.enter()
	if g == nil {
		return
	}
	defer g.leave()
	for i := range g.file.Rules {
		if rule := &g.file.Rules[i]; rule.State != "" {
			log := s.config.Log.With("rule", rule.Name, "file", rule.State)
			logged[rule.State] = checkState(g.limiters[rule.Name].Limiter, rule.Policies(), log, logged[rule.State])
		}
	}
	if redis := g.file.Redis; redis != nil && redis.State != "" {
		log := s.config.Log.With("listener", "redis", "file", redis.State)
		logged[redis.State] = checkState(g.redisTable.Limiter, []engine.Policy{redis.Policy()}, log, logged[redis.State])
	}
}

// checkState checks the file of one limiter. The parameter configured has the policies in the rule file.
func checkState(limiter *engine.Limiter, configured []engine.Policy, log *slog.Logger, before loggedState) (current loggedState) {
	if err := limiter.Stats().FileLost; err != nil {
		current.lostReason = err.Error()
	}
	if policies := policiesOf(limiter, len(configured)); !slices.Equal(policies, configured) {
		current.limits = policies
	}
	switch {
	case current.lostReason != before.lostReason && current.lostReason != "":
		log.Error("state: the file was removed, moved or replaced: from now on its processes and new ones count separately", "err", current.lostReason)
	case current.lostReason != before.lostReason:
		log.Info("state: the file is at its path again")
	}
	switch {
	case slices.Equal(current.limits, before.limits):
	case current.limits != nil:
		log.Warn("state: another process has changed the limits in the file", "rule_file", fmt.Sprint(configured),
			"in_force", fmt.Sprint(current.limits))
	default:
		log.Info("state: the limits of the file are those of the rule file again")
	}
	return current
}
