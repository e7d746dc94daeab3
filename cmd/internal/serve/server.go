package serve

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/weir-go/weir/cmd/internal/actions"
	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/metering"
	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/cmd/internal/resp"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
)

// Config has the settings of a [Server].
type Config struct {
	File *rulefile.File
	// Load reads the rule file again. It is nil if there is no rule file.
	Load    func() (*rulefile.File, error)
	Version string // version of the program
	Log     *slog.Logger
	// SetLog gets the log settings of every rule file that becomes active. It may be nil.
	SetLog func(rulefile.Log)

	// LimiterOptions, Clock and Sleep let tests move the time. If they are nil, the system's time is used.
	LimiterOptions []engine.Option
	Clock          func() time.Time
	Sleep          func(time.Duration)
	// Transport is for tests: see [proxy.Config].
	Transport func(proxy.Target, http.RoundTripper) http.RoundTripper
	// Inherited has the sockets that the process got at its start: see [listen.Inherit].
	Inherited *listen.Inherited

	// OpenFiles is how many files the process may open; 0 means the system's limit. Only tests set it.
	OpenFiles uint64
}

// Server is a running server. Make one with [Start], and then call [Server.Run].
type Server struct {
	config      Config
	current     atomic.Pointer[generation]
	generations sync.WaitGroup // waits for the generations that have requests in progress
	traffic     *traffic
	connections map[listen.Role]*listen.ConnLimit
	sockets     *listen.Sockets
	upstreams   *proxy.Upstreams
	redis       redisState
	tokens      metering.States
	actions     *actions.Table
	page        page
	life        life
}

// A redisState is the state of the Redis listener that does not belong to a generation, and outlives all generations.
type redisState struct {
	counters resp.Counters
	holds    *resp.Holds  // nil until they are needed
	places   *resp.Places // nil until they are needed
}

// Start binds the ports and serves. After an error nothing stays open.
func Start(c Config) (*Server, error) {
	if c.OpenFiles == 0 {
		c.OpenFiles = openFiles()
	}
	if c.Sleep == nil {
		c.Sleep = time.Sleep
	}
	s := &Server{config: c, traffic: newTraffic(), actions: actions.New(actions.Config{Now: c.Clock, Log: c.Log})}
	s.tokens.Clock = c.Clock
	s.life.init()
	s.connections = s.newConnLimits()
	s.upstreams = proxy.New(proxy.Config{
		Base: s.life.base, Now: c.Clock, Buckets: durations, Log: c.Log, Transport: c.Transport,
	})
	s.sockets = listen.New(listen.Config{
		Base: s.life.base, Inherited: c.Inherited, Limits: s.connections, Trusts: s.trustsPeer, Protocol: s.protocol,
		Failed: s.life.fail, Log: c.Log,
	})
	s.current.Store(&generation{file: &rulefile.File{}})
	s.page.lastReload.Store(&admin.Reload{})
	if c.Load != nil {
		s.life.loadedSum = fingerprint(filesOf(c.File))
	}
	if _, err := s.replace(c.File); err != nil {
		s.life.cancelBase()
		return nil, err
	}
	s.logUnusedStates(c.File)
	for i := range c.File.Rules {
		r := &c.File.Rules[i]
		attrs := []any{"rule", r.Name, "policy", r.OwnLimit(), "key", r.Key, "for", r.Match}
		if !r.Spread { // a spread rule has no table
			attrs = append(attrs, "max_keys", r.MaxKeys)
		}
		c.Log.Info("limiting", attrs...)
	}
	return s, nil
}

// lastReload is how long [Server.Run] waits at its end for a reload in progress.
const lastReload = time.Second

// URL returns the URL of the first endpoint for clients, as seen from this machine. If the system chose the port, URL
// has that port.
func (s *Server) URL() string { return s.urlOf(clients) }

func (s *Server) urlOf(r listen.Role) string {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	return s.sockets.URL(r)
}

// Run serves until ctx ends or [Server.HandOver] succeeds. Meanwhile, it reloads the rule file when the file changes.
// At the end, it accepts no more connections, waits for requests in progress for at most shutdown_timeout, and logs a
// summary.
//
// Run returns an error only if a listener failed. Call Run only once.
func (s *Server) Run(ctx context.Context) error {
	watchContext, stopWatch := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	if s.config.Load != nil {
		watchers.Go(func() { s.watch(watchContext) })
	}
	watchers.Go(func() { s.watchStates(watchContext) })
	watchers.Go(func() { s.watchActions(watchContext) })
	if !s.config.Inherited.HandedOver() { // after an upgrade, the previous process does this
		tellSystemd(daemon.SdNotifyReady)
	}
	var err error
	select {
	case <-ctx.Done():
		tellSystemd(daemon.SdNotifyStopping)
	case err = <-s.life.failure:
	case <-s.life.upgrade.done:
	}
	close(s.life.ending)
	stopWatch()
	s.stop()
	// A reload that is still in progress can no longer change anything. It may never end, because it may wait for a
	// file such as a pipe or a file on a remote disk.
	watchersDone := make(chan struct{})
	go func() {
		watchers.Wait()
		close(watchersDone)
	}()
	select {
	case <-watchersDone:
	case <-time.After(lastReload):
	}
	s.life.upgrade.killSuccessor()
	s.config.Log.LogAttrs(context.Background(), slog.LevelInfo, "stopped", s.summary()...)
	return err
}
