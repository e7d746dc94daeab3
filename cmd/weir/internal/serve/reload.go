package serve

import (
	"errors"
	"strings"

	"github.com/weir-go/weir/cmd/weir/internal/config"
)

// Reload reads the rule file again and goes over to what it says. No connection is dropped, and no
// bucket filled that the file does not make another. If anything is wrong with the file, or cannot
// be had, everything stays as it was; the log says so, and the error why. It may be called from any
// goroutine.
func (s *Server) Reload() error {
	log := s.config.Log
	if s.config.Load == nil {
		log.Warn("nothing to reload: the limits are the command line's; write a rule file to change them under way")
		return nil
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	file, err := s.config.Load()
	if err == nil {
		var changes *config.Changes
		if changes, err = s.replace(file); err == nil {
			s.note(nil)
			lines := changes.Lines()
			for _, line := range lines {
				log.Info("reload: " + line)
			}
			log.Info("reloaded", "file", file.Name, "changes", len(lines), "generation", s.current.Load().number)
			return nil
		}
	}
	s.note(err)
	for line := range strings.Lines(err.Error()) {
		log.Error("reload: " + strings.TrimSuffix(line, "\n"))
	}
	log.Error("reload failed: everything stays as it was", "generation", s.current.Load().number)
	return err
}

var errStopped = errors.New("the server is stopping")

// replace puts the generation of a file in place of the present one.
func (s *Server) replace(file *config.File) (*config.Changes, error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.stopped {
		return nil, errStopped
	}
	before := s.current.Load()
	changes := config.Diff(before.file, file)
	plan, err := s.plan(file)
	if err != nil {
		return nil, err
	}
	observer, fresh, err := s.observer(file, before)
	if err != nil {
		plan.abandon()
		return nil, err
	}
	next, err := s.build(file, before, changes, observer)
	if err != nil {
		plan.abandon()
		if fresh {
			_ = observer.Close() // always nil
		}
		return nil, err
	}
	s.current.Store(next)
	if last := s.admin.Swap(observer); last != nil && last != observer {
		_ = last.Close() // its event streams end, so that its connections do
	}
	s.carryOut(plan, file)
	if before.users.Load() > 0 { // 0 is where the first one came from: nothing
		before.leave()
	}
	return changes, nil
}
