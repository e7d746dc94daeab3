package serve

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/admin"
	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/engine"
)

// Config is what a server is made of.
type Config struct {
	File *config.File
	// Load reads the rule file again, for a reload. Nil where there is none.
	Load    func() (*config.File, error)
	Version string // of the program
	Log     *slog.Logger

	// LimiterOptions and Clock are for tests that move the time.
	LimiterOptions []engine.Option
	Clock          func() time.Time
}

// Server is a server at work. Make one with [Start], then call [Server.Run].
type Server struct {
	config  Config
	current atomic.Pointer[generation]
	counts  counters
	room    *room
	loaded  sum // of the first file

	admin    atomic.Pointer[admin.Admin]
	reloaded atomic.Pointer[admin.Reload] // the last one
	leaving  atomic.Bool                  // no more requests, please

	turn        sync.Mutex // of reloads, so that the last one to read the file is the last to replace
	reloading   sync.Mutex // guards what follows
	sockets     []*socket
	retired     []*front // with connections that have outlived a change of settings
	stopped     bool
	draining    sync.WaitGroup // fronts of sockets that a reload has closed
	generations sync.WaitGroup // those with requests under way

	base   context.Context // of all requests
	cut    context.CancelFunc
	failed chan error // what broke a listener
}

// Start binds the ports and serves. An error says what of it could not be done, and nothing is
// left behind then.
func Start(c Config) (*Server, error) {
	s := &Server{config: c, room: newRoom(c.Log), failed: make(chan error, 1)}
	s.base, s.cut = context.WithCancel(context.Background())
	s.current.Store(&generation{file: &config.File{}})
	s.reloaded.Store(&admin.Reload{})
	if c.Load != nil {
		s.loaded = fingerprint(filesOf(c.File))
	}
	if _, err := s.replace(c.File); err != nil {
		s.cut()
		return nil, err
	}
	for i := range c.File.Rules {
		r := &c.File.Rules[i]
		c.Log.Info("limiting", "rule", r.Name, "policy", r.Policy, "key", r.Key, "for", r.Match, "max_keys", r.MaxKeys)
	}
	return s, nil
}

// URL is where the first of the listeners for clients can be tried from this machine, with the port it
// really has.
func (s *Server) URL() string { return s.urlOf(clients) }

func (s *Server) urlOf(r role) string {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	for _, socket := range s.sockets {
		if socket.front.post.role == r {
			return socket.url()
		}
	}
	return ""
}

// fail notes what broke a listener.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default: // one is enough to end
	}
}

// Run serves until ctx ends, and reloads the rule file when it changes. Then it takes no more
// connections, gives the requests under way the time that the file says, and logs a
// summary. Call it once. The error is that of a listener that broke; the end of ctx is none.
func (s *Server) Run(ctx context.Context) error {
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if s.config.Load != nil {
		watch.Go(func() { s.watch(watching) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	unwatch()
	watch.Wait()
	s.stop()
	s.config.Log.LogAttrs(context.Background(), slog.LevelInfo, "stopped", s.counts.summary()...)
	return err
}
