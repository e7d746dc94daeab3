package redislimit

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/redislimit/internal/defaults"
)

// A Client is the connection to one Redis or Valkey deployment in which limits are kept, called the store here: one
// server, Sentinel, or Cluster. Make one with [Open] or [NewClient] and share it between limiters. All its methods
// may be called from any goroutine.
type Client struct {
	link  atomic.Pointer[link]
	owned bool // Open made the connection, so Close closes it
	clientConfig
	joining sync.WaitGroup     // the goroutine that joins a store which did not answer Open
	giveUp  context.CancelFunc // ends it; nil if there is none

	calls, keys, failed, timeouts, orphans atomic.Int64
	condition                              condition
	dialer                                 *dialer // nil for a client of NewClient
	eviction                               eviction
}

type clientConfig struct {
	prefix     string
	timeout    time.Duration
	partitions int
	breakAfter time.Duration
	secret     [sha256.Size]byte
	fullKeys   bool
	joinLater  bool
	log        *slog.Logger
	tls        *tls.Config
	files      Files

	sentinelUser, sentinelPassword string
}

// A ClientOption changes one thing about a client at [Open] or [NewClient].
type ClientOption func(*clientConfig) error

// Prefix sets what the names of all keys in the store begin with; "weir" without it. It is 1 to 64 characters
// and has no braces, because they would choose the slot in a cluster, and no control characters.
func Prefix(prefix string) ClientOption {
	return func(c *clientConfig) error {
		bad := strings.ContainsAny(prefix, "{}") || strings.ContainsFunc(prefix, unicode.IsControl)
		if bad || prefix == "" || len(prefix) > 64 {
			return fmt.Errorf("redislimit: Prefix(%q): want 1 to 64 characters, without braces and control characters", prefix)
		}
		c.prefix = prefix
		return nil
	}
}

// Timeout sets how long the answer of a store is waited for; 50ms without it, 1ms to 10s. It is time in which the
// process runs. No [Limiter.Take] waits longer for a store that answers nothing. In a burst of questions, while the
// store answers, one waits for its turn as well: two seconds at most, or the timeout if that is longer, or until its
// context is done.
func Timeout(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		if d < time.Millisecond || d > 10*time.Second {
			return fmt.Errorf("redislimit: Timeout(%v): want 1ms to 10s", d)
		}
		c.timeout = d
		return nil
	}
}

// Partitions sets into how many hash tags keys are spread, so that one call to a cluster may carry several keys of
// one tag; 64 without it, 1 to 4,096. It is part of the keys' names: every node must have the same.
func Partitions(n int) ClientOption {
	return func(c *clientConfig) error {
		if n < 1 || n > 4096 {
			return fmt.Errorf("redislimit: Partitions(%d): want 1 to 4,096", n)
		}
		c.partitions = n
		return nil
	}
}

// BreakAfter sets for how long all calls to a part of the store must have failed for it to count as lost; 200ms
// without it, 1ms to 1 minute. It counts from when the first of them was sent.
func BreakAfter(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		if d < time.Millisecond || d > time.Minute {
			return fmt.Errorf("redislimit: BreakAfter(%v): want 1ms to 1m", d)
		}
		c.breakAfter = d
		return nil
	}
}

// TLS sets how [Open] connects to an address that begins with rediss://, such as with another authority than those of
// the machine, or with a certificate of the client. If config has no ServerName, the host of the address is used.
func TLS(config *tls.Config) ClientOption {
	return func(c *clientConfig) error {
		if config == nil {
			return errors.New("redislimit: TLS(nil): want a configuration")
		}
		c.tls = config.Clone()
		return nil
	}
}

// SentinelUser sets the user and the password of the sentinels, which are not those of the store. Without it, [Open]
// sends them none. An empty user is the default user.
func SentinelUser(user, password string) ClientOption {
	return func(c *clientConfig) error {
		if password == "" {
			return fmt.Errorf("redislimit: SentinelUser(%q): want a password", user)
		}
		c.sentinelUser, c.sentinelPassword = user, password
		return nil
	}
}

func newClientConfig(options []ClientOption) (clientConfig, error) {
	c := clientConfig{
		prefix: defaults.Prefix, timeout: defaults.Timeout, partitions: defaults.Partitions,
		breakAfter: defaults.BreakAfter, secret: noSecret,
	}
	for i, option := range options {
		if option == nil {
			return c, fmt.Errorf("redislimit: option %d of %d is nil", i+1, len(options))
		}
		if err := option(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Open connects to a store by its address:
//
//	redis://[[user]:password@]host:port[/database]
//	rediss://...                                    over TLS
//	redis://a:6379?addr=b:6379&addr=c:6379          a cluster: some of its nodes
//	redis://a:26379?addr=b:26379&master_set=name    Sentinel
//
// It fails with [ErrStore] if the store does not answer within five seconds, or within the context, and fails or does
// not let the user run the scripts: see [Rights]. With [JoinLater] a store that does not answer is no error.
func Open(ctx context.Context, address string, options ...ClientOption) (*Client, error) {
	config, err := newClientConfig(options)
	if err != nil {
		return nil, err
	}
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return nil, badAddress(address, err)
	}
	if config.tls != nil {
		if o.TLSConfig == nil {
			return nil, errors.New("redislimit: TLS: the address is no rediss://")
		}
		if config.tls.ServerName == "" {
			config.tls.ServerName = o.TLSConfig.ServerName
		}
		o.TLSConfig = config.tls
		if o.Sentinel.TLSConfig != nil {
			o.Sentinel.TLSConfig = config.tls
		}
	}
	// A dead connection is given up soon, so that the store's return is noticed.
	o.Dialer = net.Dialer{Timeout: 500 * time.Millisecond, KeepAlive: time.Second}
	o.ConnWriteTimeout = time.Second
	o.DisableCache, o.DisableRetry = true, true
	o.ClientName = "weir"
	if config.sentinelPassword != "" {
		if o.Sentinel.MasterSet == "" {
			return nil, errors.New("redislimit: SentinelUser: the address has no master_set")
		}
		o.Sentinel.Username, o.Sentinel.Password = config.sentinelUser, config.sentinelPassword
	}
	// A dead sentinel is given up as soon. A new master that no sentinel announced is looked for every two seconds.
	o.Sentinel.Dialer, o.Sentinel.ClientName = o.Dialer, o.ClientName
	o.Sentinel.TopologyRefreshInterval = 2 * time.Second
	dialer, err := newDialer(config, &o)
	if err != nil {
		return nil, err
	}
	c := &Client{clientConfig: config, owned: true, dialer: dialer}
	if err := c.connect(ctx, o); err != nil && (!c.joinLater || ctx.Err() != nil || !mayPass(err)) {
		return nil, err
	} else if err != nil {
		c.startLost(o, err)
	}
	return c, nil
}

// badAddress is the error of an address that is none. What is wrong with one that may have a password in it is not
// repeated: the password may be what is wrong with it.
func badAddress(address string, cause error) error {
	const want = "redislimit: the store's address is no redis://[[user]:password@]host:port[/database]"
	if strings.Contains(address, "@") {
		return errors.New(want + "; in a password write %40 for @, %2F for /, %3A for :, %23 for # and %3F for ?")
	}
	return fmt.Errorf("%s: %w", want, cause)
}

// silent is the error of a store that does not answer. It is an [ErrStore].
func silent(o rueidis.ClientOption, cause error) error {
	return noAnswer{fmt.Errorf("redislimit: the store at %s does not answer: %w", strings.Join(o.InitAddress, ", "), cause)}
}

type noAnswer struct{ error }

func (noAnswer) Is(target error) bool { return target == ErrStore }
func (e noAnswer) Unwrap() error      { return e.error }

// NewClient makes a client of a connection that there is already. It should give dead connections up within a
// second or so (ConnWriteTimeout); its own retries do not matter. [Client.Close] leaves it open.
func NewClient(redis rueidis.Client, options ...ClientOption) (*Client, error) {
	if redis == nil {
		return nil, errors.New("redislimit: NewClient(nil): want a client of package rueidis")
	}
	config, err := newClientConfig(options)
	if err != nil {
		return nil, err
	}
	return newClient(redis, config), nil
}

func newClient(redis rueidis.Client, config clientConfig) *Client {
	c := &Client{clientConfig: config}
	c.link.Store(c.newLink(redis))
	return c
}

// Close closes the connections, if [Open] made them. Close the client's limiters before. It waits for calls that the
// server has yet to answer, for at most two seconds.
//
// The wait has an end because rueidis' own may have none. In v1.0.79 a call that counts itself as waiting before
// pipe.Close reads that count, and that reads the state of the connection after pipe.Close has changed it, leaves
// nobody to answer the PING that pipe.Close waits for. The connection is closed by then: one goroutine stays.
func (c *Client) Close() error {
	if !c.owned {
		return nil
	}
	if c.giveUp != nil {
		c.giveUp()
		c.joining.Wait()
	}
	redis := c.link.Load().redis
	if redis == nil {
		return nil
	}
	closed := make(chan struct{})
	go func() {
		redis.Close()
		close(closed)
	}()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	return nil
}

// closeTime is longer than the second after which rueidis closes a connection whose server does not answer.
const closeTime = 2 * time.Second

// Health is the state of a store as a client sees it.
type Health struct {
	Parts    int   // that can fail by themselves: one, or the partitions of a cluster; one before it has answered
	Lost     int   // parts that are lost: they do not answer, or the store drops keys, and all are
	Calls    int64 // script calls made
	Keys     int64 // keys asked for by them
	Failures int64 // failed calls, those out of time included, and keys that hold something that is not a limit's
	Timeouts int64 // calls out of time

	// Connections that a client of Open has opened so far, to sentinels, too, and closed of these. Both are 0 of a
	// client of NewClient.
	Opened, Closed int64

	// LostTime is for how long any part has been lost so far, all outages together, that which lasts included.
	LostTime time.Duration

	// Evicts is the policy by which the store drops keys when its memory is full, and with them what they owe: such as
	// allkeys-lru. It is "" if it drops none, or does not say. When keys are found dropped, which is looked for once a
	// second, the store is lost for 20 seconds after the last one.
	Evicts string

	LastError string // of a call; "" if none has failed
	// timeout, connection, certificate, forbidden, eviction, error, or the code of the store's reply, such as readonly
	LastErrorKind string
	LastErrorAt   time.Time // the zero Time if none has failed
}

// Health returns the state of the store.
func (c *Client) Health() Health {
	breakers := c.link.Load().breakers
	h := Health{
		Parts: len(breakers), Calls: c.calls.Load(), Keys: c.keys.Load(),
		Failures: c.failed.Load(), Timeouts: c.timeouts.Load(), LostTime: c.condition.lost.time(time.Now),
	}
	if c.dialer != nil {
		h.Closed = c.dialer.closed.Load() // first, so that no more are closed than opened
		h.Opened = c.dialer.opened.Load()
	}
	for i := range breakers {
		if breakers[i].IsOpen() {
			h.Lost++
		}
	}
	if c.eviction.isLost() {
		h.Lost = h.Parts
	}
	if policy := c.eviction.policy.Load(); policy != nil {
		h.Evicts = *policy
	}
	if last := c.condition.last.Load(); last != nil {
		h.LastError, h.LastErrorKind, h.LastErrorAt = last.err.Error(), kindOf(last.err), last.at
	}
	return h
}
