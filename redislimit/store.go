package redislimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// A Store is a Redis or Valkey in which limits are kept: one server, Sentinel, or Cluster. Make one with
// [Open] or [NewStore] and share it between limiters. All its methods may be called from any goroutine.
type Store struct {
	client     rueidis.Client
	owned      bool
	prefix     string
	timeout    time.Duration
	partitions int
	failures   int
	breakers   []breaker // one for each part that can fail by itself

	calls, keys, failed, timeouts, orphans atomic.Int64
}

// A StoreOption changes one thing about a store.
type StoreOption func(*Store) error

// Prefix sets what the names of all keys in the store begin with; "weir" without it. It is 1 to 64 characters
// and has no braces, because they would choose the slot in a cluster.
func Prefix(prefix string) StoreOption {
	return func(s *Store) error {
		if prefix == "" || len(prefix) > 64 || strings.ContainsAny(prefix, "{}") {
			return fmt.Errorf("redislimit: Prefix(%q): want 1 to 64 characters, without braces", prefix)
		}
		s.prefix = prefix
		return nil
	}
}

// Timeout sets how long the store is waited for, at most; 50ms without it, 1ms to 10s. No [Limiter.Take] takes
// longer.
func Timeout(d time.Duration) StoreOption {
	return func(s *Store) error {
		if d < time.Millisecond || d > 10*time.Second {
			return fmt.Errorf("redislimit: Timeout(%v): want 1ms to 10s", d)
		}
		s.timeout = d
		return nil
	}
}

// Partitions sets into how many hash tags keys are spread, so that those of one may be asked for in one call
// to a cluster; 64 without it, 1 to 4,096. It is part of the keys' names: every node must have the same.
func Partitions(n int) StoreOption {
	return func(s *Store) error {
		if n < 1 || n > 4096 {
			return fmt.Errorf("redislimit: Partitions(%d): want 1 to 4,096", n)
		}
		s.partitions = n
		return nil
	}
}

// BreakAfter sets after how many failures in a row a part of the store counts as lost; 5 without it, 1 to 1,000.
func BreakAfter(failures int) StoreOption {
	return func(s *Store) error {
		if failures < 1 || failures > 1000 {
			return fmt.Errorf("redislimit: BreakAfter(%d): want 1 to 1,000", failures)
		}
		s.failures = failures
		return nil
	}
}

// Open connects to a store by its address:
//
//	redis://[[user]:password@]host:port[/database]
//	rediss://...                                    over TLS
//	redis://a:6379?addr=b:6379&addr=c:6379          a cluster: some of its nodes
//	redis://a:26379?addr=b:26379&master_set=name    Sentinel
//
// It fails if the store does not answer within five seconds, or within the context.
func Open(ctx context.Context, address string, options ...StoreOption) (*Store, error) {
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("redislimit: the store's address is no redis://host:port: %w", err)
	}
	// A connection that is dead is given up soon, so that the store's return is noticed.
	o.Dialer = net.Dialer{Timeout: 500 * time.Millisecond, KeepAlive: time.Second}
	o.ConnWriteTimeout = time.Second
	o.DisableCache, o.DisableRetry = true, true
	o.ClientName = "weir"
	// A sentinel that is gone is given up as soon; and a new master is found, too, that was not announced, or
	// while the sentinel that is listened to is silent.
	o.Sentinel.Dialer, o.Sentinel.ClientName = o.Dialer, o.ClientName
	o.Sentinel.TopologyRefreshInterval = 2 * time.Second
	type result struct {
		client rueidis.Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(o)
		done <- result{client, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("redislimit: the store at %s does not answer: %w", strings.Join(o.InitAddress, ", "), r.err)
		}
		s, err := NewStore(r.client, options...)
		if err != nil {
			r.client.Close()
			return nil, err
		}
		s.owned = true
		return s, nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, fmt.Errorf("redislimit: the store at %s does not answer: %w", strings.Join(o.InitAddress, ", "), ctx.Err())
	}
}

// NewStore makes a store of a client that is there. The client should give dead connections up within a
// second or so (ConnWriteTimeout); its own retries do not matter. [Store.Close] leaves it open.
func NewStore(client rueidis.Client, options ...StoreOption) (*Store, error) {
	if client == nil {
		return nil, errors.New("redislimit: NewStore(nil): want a client")
	}
	s := &Store{client: client, prefix: "weir", timeout: 50 * time.Millisecond, partitions: 64, failures: 5}
	for i, option := range options {
		if option == nil {
			return nil, fmt.Errorf("redislimit: option %d of %d is nil", i+1, len(options))
		}
		if err := option(s); err != nil {
			return nil, err
		}
	}
	// Only a cluster minds which keys are in a call, and only its parts fail by themselves.
	lanes := 1
	if client.Mode() == rueidis.ClientModeCluster {
		lanes = s.partitions
	}
	s.breakers = make([]breaker, lanes)
	return s, nil
}

// Close closes the connections, if [Open] made them. The limiters of the store should be closed before.
func (s *Store) Close() error {
	if s.owned {
		s.client.Close()
	}
	return nil
}

// Health is how a store does.
type Health struct {
	Parts    int   // that can fail by themselves: one, or the partitions of a cluster
	Lost     int   // parts that are lost: their breaker is open
	Calls    int64 // script calls made
	Keys     int64 // keys asked for by them
	Failures int64 // calls that failed, those out of time included, and keys that hold something that is no limit's
	Timeouts int64 // calls out of time
}

// Health returns how the store does.
func (s *Store) Health() Health {
	h := Health{
		Parts: len(s.breakers), Calls: s.calls.Load(), Keys: s.keys.Load(),
		Failures: s.failed.Load(), Timeouts: s.timeouts.Load(),
	}
	for i := range s.breakers {
		if s.breakers[i].isOpen() {
			h.Lost++
		}
	}
	return h
}
