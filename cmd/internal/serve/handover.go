package serve

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/weir-go/weir/cmd/internal/listen"
)

// HandOver replaces this process by a new process of its program file, which may be a newer version. It waits for the
// new process, which gets the listening sockets. When the new process serves, [Server.Run] waits for the requests in
// progress and returns.
//
// If the upgrade fails, HandOver logs the error, and this process continues with its active limits. If ctx ends before
// the new process serves, the new process gets a SIGTERM, and is killed when Run returns. Any goroutine may call
// HandOver.
func (s *Server) HandOver(ctx context.Context) error {
	log := s.config.Log
	if !s.life.upgrade.isBegun.CompareAndSwap(false, true) {
		log.Error("upgrade refused: another one is in progress")
		return errors.New("another upgrade is in progress")
	}
	if err := s.handOver(ctx); err != nil {
		s.life.upgrade.isBegun.Store(false)
		log.Error("upgrade failed: this process continues as before", "err", err)
		return err
	}
	return nil
}

// yield leaves the sockets and the files of Unix sockets to the next process. Then [Server.Run] can end.
func (s *Server) yield() {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.life.isStopped = true // a reload would bind addresses that the other process has now
	s.sockets.Yield()
	s.life.upgrade.complete()
}

func (s *Server) handOver(ctx context.Context) error {
	if os.Getpid() == 1 {
		return errors.New("this is process 1, and when it ends its container does: start another container")
	}
	if ctx.Err() != nil {
		return errStopped
	}
	endTurn, ok := s.life.takeTurn() // meanwhile, no reload can change the sockets or the limits
	if !ok {
		return errStopped
	}
	defer endTurn()
	sockets, err := s.socketsForNext()
	if err != nil {
		return err
	}
	defer sockets.Close()
	oldLimits := s.stateLimits()
	next, err := sockets.Start(ctx)
	if err != nil {
		return err
	}
	s.life.upgrade.successor.Store(next.Process)
	defer s.life.upgrade.successor.Store(nil) // after a failure; see complete
	s.config.Log.Info("upgrade: another process starts", "pid", next.Pid)
	outcome, err := next.Outcome()
	switch outcome {
	case listen.Serving:
		s.config.Log.Info("upgraded: another process serves now", "pid", next.Pid)
		tellSystemd(fmt.Sprintf("MAINPID=%d", next.Pid))
		s.yield()
		return nil
	case "": // the new process has not undone its changes
		err = errors.Join(err, s.putBack(oldLimits))
	default:
		err = errors.New(outcome)
	}
	return fmt.Errorf("process %d did not start: %w", next.Pid, err)
}

// socketsForNext returns the sockets for the next process. The caller must close the result.
func (s *Server) socketsForNext() (*listen.Handed, error) {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.isStopped {
		return nil, errStopped
	}
	return s.sockets.HandOver()
}

// tellSystemd reports the state of the service to systemd if the unit has Type=notify.
func tellSystemd(state string) {
	_, _ = daemon.SdNotify(false, state) // an error does not matter to weir
}
