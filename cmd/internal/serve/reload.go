package serve

import (
	"errors"
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// Reload reads the rule file again and makes it active. No connection is dropped. A bucket starts over full only if the
// new file identifies it in another way, for example by another key.
//
// After an error nothing has changed. The error is logged unless the server is ending. Any goroutine may call Reload.
// If an upgrade is in progress, Reload waits for it.
func (s *Server) Reload() error {
	log := s.config.Log
	if s.config.Load == nil {
		log.Warn("nothing to reload: the limits come from the command line; use a rule file to change them at run time")
		return nil
	}
	endTurn, ok := s.life.takeTurn()
	if !ok {
		return errStopped
	}
	defer endTurn()
	file, err := s.config.Load()
	if err == nil {
		var changes *rulefile.Changes
		if changes, err = s.replace(file); err == nil {
			s.noteReload(nil)
			lines := changes.Lines()
			for _, line := range lines {
				log.Info("reload: " + line)
			}
			log.Info("reloaded", "file", file.Name, "changes", len(lines), "generation", s.current.Load().number)
			return nil
		}
	}
	if errors.Is(err, errStopped) {
		return err // the file is not wrong
	}
	s.noteReload(err)
	for line := range strings.Lines(err.Error()) {
		log.Error("reload: " + strings.TrimSuffix(line, "\n"))
	}
	unchanged := "everything"
	if errors.As(err, new(*limitsError)) {
		unchanged = "everything else"
	}
	log.Error("reload failed: "+unchanged+" stays as it was", "generation", s.current.Load().number)
	return err
}

var errStopped = errors.New("the server is stopping")

// replace makes the generation of a file, which replaces the current generation.
func (s *Server) replace(file *rulefile.File) (*rulefile.Changes, error) {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.isStopped {
		return nil, errStopped
	}
	access, err := accessOf(file)
	if err != nil {
		return nil, err
	}
	before := s.current.Load()
	changes := rulefile.Diff(before.file, file)
	sockets, err := s.sockets.Prepare(endpoints(file))
	if err != nil {
		return nil, err
	}
	page, isNew, err := s.adminFor(file, before)
	if err != nil {
		sockets.Abandon()
		return nil, err
	}
	next, err := s.buildWithActions(file, before, changes, page)
	if err != nil {
		sockets.Abandon()
		if isNew {
			_ = page.Close() // Close always returns nil
		}
		return nil, err
	}
	s.current.Store(next)
	s.tokens.Keep(next.meters)
	if s.config.SetLog != nil {
		s.config.SetLog(file.Log)
	}
	s.page.access.Store(access) // before the page is replaced, because the new page may not require a token
	s.page.replace(page)
	s.applyBounds(file)
	sockets.Apply(file.Server.ShutdownTimeout)
	if before.users.Load() > 0 { // 0 for the empty generation before the first one
		before.leave()
	}
	return changes, nil
}
