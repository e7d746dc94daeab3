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

// A Client is the connection to one Redis or Valkey deployment that keeps limits: one server, Sentinel, or Cluster. The
// deployment is called the store here. Make a client with [Open] or [NewClient] and share it between limiters. All
// methods may be called from any goroutine.
type Client struct {
	link  atomic.Pointer[link]
	owned bool // Open made the connection, so Close closes it
	clientConfig
	joining sync.WaitGroup     // the goroutine that joins a store which did not answer Open
	giveUp  context.CancelFunc // ends the joining goroutine; nil if there is none

	calls, keys, failed, timeouts, orphans atomic.Int64
	condition                              condition
	dialer                                 *dialer // nil for a client of NewClient
	eviction                               eviction
	limiters                               limiters
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

// Prefix sets the prefix of all key names in the store. The default is "weir". A prefix has 1 to 64 characters. Control
// characters are not allowed, and braces are not allowed because they would choose the slot in a cluster.
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

// Timeout sets how long a call waits for the answer of a store: 1ms to 10s, 50ms by default. Only time in which the
// process runs counts. If the store does not answer at all, no [Limiter.Take] waits longer than this. In a burst, while
// the store answers, a question also waits for its turn before its call is sent. This wait ends when the context is
// done. It takes at most two seconds, or at most the timeout if the timeout is longer.
func Timeout(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		if d < time.Millisecond || d > 10*time.Second {
			return fmt.Errorf("redislimit: Timeout(%v): want 1ms to 10s", d)
		}
		c.timeout = d
		return nil
	}
}

// Partitions sets the number of hash tags among which keys are distributed, so that one call to a cluster may carry
// several keys of one tag. The number is 1 to 4,096, 64 by default. The names of keys depend on it, so every node must
// use the same number.
func Partitions(n int) ClientOption {
	return func(c *clientConfig) error {
		if n < 1 || n > 4096 {
			return fmt.Errorf("redislimit: Partitions(%d): want 1 to 4,096", n)
		}
		c.partitions = n
		return nil
	}
}

// BreakAfter sets how long all calls to a part of the store must have failed before that part counts as lost: 1ms to 1
// minute, 200ms by default. The time starts when the first of the calls that failed after the last success was sent.
func BreakAfter(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		if d < time.Millisecond || d > time.Minute {
			return fmt.Errorf("redislimit: BreakAfter(%v): want 1ms to 1m", d)
		}
		c.breakAfter = d
		return nil
	}
}

// TLS sets the configuration with which [Open] connects to an address that begins with rediss://. Use it for a
// certificate authority that the machine does not trust, or for a client certificate. If config has no ServerName, the
// host of the address is used.
func TLS(config *tls.Config) ClientOption {
	return func(c *clientConfig) error {
		if config == nil {
			return errors.New("redislimit: TLS(nil): want a configuration")
		}
		c.tls = config.Clone()
		return nil
	}
}

// SentinelUser sets the user name and the password that [Open] sends to the sentinels. They are separate from the user
// and the password of the store. Without this option, Open sends no user and no password to the sentinels. An empty
// user is the default user.
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
// Open returns an error that matches [ErrStore] if the store does not answer within five seconds or before the context
// is done. It also returns an error if the user may not run the scripts: see [Rights]. With [JoinLater], a store that
// does not answer is not an error.
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
			return nil, errors.New("redislimit: TLS: the address does not begin with rediss://")
		}
		if config.tls.ServerName == "" {
			config.tls.ServerName = o.TLSConfig.ServerName
		}
		o.TLSConfig = config.tls
		if o.Sentinel.TLSConfig != nil {
			o.Sentinel.TLSConfig = config.tls
		}
	}
	// The client gives up a connection to a dead server soon, so that it notices when the store is back.
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
	// The client gives up a connection to a dead sentinel equally soon. Every two seconds, it also checks whether there
	// is a new master that no sentinel has announced.
	o.Sentinel.Dialer, o.Sentinel.ClientName = o.Dialer, o.ClientName
	o.Sentinel.TopologyRefreshInterval = 2 * time.Second
	dialer, err := newDialer(config, &o)
	if err != nil {
		return nil, err
	}
	c := &Client{clientConfig: config, owned: true, dialer: dialer, limiters: newLimiters()}
	if err := c.connect(ctx, o); err != nil && (!c.joinLater || ctx.Err() != nil || !mayPass(err)) {
		return nil, err
	} else if err != nil {
		c.startLost(o, err)
	}
	return c, nil
}

// badAddress returns the error for an invalid address. If the address may contain a password, the error does not repeat
// the invalid part of the address, because that part may be the password.
func badAddress(address string, cause error) error {
	const want = "redislimit: the store's address is not redis://[[user]:password@]host:port[/database]"
	if strings.Contains(address, "@") {
		return errors.New(want + "; in a password write %40 for @, %2F for /, %3A for :, %23 for # and %3F for ?")
	}
	return fmt.Errorf("%s: %w", want, cause)
}

// silent returns the error for a store that does not answer. It matches [ErrStore].
func silent(o rueidis.ClientOption, cause error) error {
	return noAnswer{fmt.Errorf("redislimit: the store at %s does not answer: %w", strings.Join(o.InitAddress, ", "), cause)}
}

type noAnswer struct{ error }

func (noAnswer) Is(target error) bool { return target == ErrStore }
func (e noAnswer) Unwrap() error      { return e.error }

// NewClient makes a client of an existing connection. That connection should drop a dead peer within about a second
// (ConnWriteTimeout). It does not matter whether the connection retries commands. [Client.Close] leaves the connection
// open.
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
	c := &Client{clientConfig: config, limiters: newLimiters()}
	c.link.Store(c.newLink(redis))
	return c
}

// Close closes the connections, if [Open] made them. Close the client's limiters first. Debts that the limiters have
// not charged to the store by then are lost ([Limiter.Settle] prevents this). Close waits at most two seconds for calls
// that the server has not answered yet. While requests of closed limiters are in flight ([Limiter.Enter]), the
// connections stay open until the last of these requests has ended. Close does not wait for that.
//
// The wait is bounded because rueidis' own wait may never end. In v1.0.79, pipe.Close sends a PING and waits for its
// answer. Suppose that a concurrent call counts itself as waiting before pipe.Close reads this count, but reads the
// connection's state after pipe.Close has changed the state. Then no goroutine reads the answer to the PING, so
// pipe.Close waits forever. By then, the connection is closed, so only one goroutine leaks.
func (c *Client) Close() error {
	c.limiters.kin.end()
	if c.limiters.flights.close() {
		c.disconnect()
	}
	return nil
}

// disconnect closes the connections, if the client made them.
func (c *Client) disconnect() {
	if !c.owned {
		return
	}
	if c.giveUp != nil {
		c.giveUp()
		c.joining.Wait()
	}
	redis := c.link.Load().redis
	if redis == nil {
		return
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
}

// closeTime is longer than one second, the time after which rueidis closes a connection whose server does not answer.
const closeTime = 2 * time.Second

// Health is the state of a store as a client sees it.
type Health struct {
	Parts    int   // parts that can fail independently: partitions of a cluster, else one; one before the first answer
	Lost     int   // parts that are lost because they do not answer; all parts if the store drops keys
	Calls    int64 // script calls made
	Keys     int64 // keys in these calls
	Failures int64 // failed calls, including timeouts, and keys whose value is not the state of a limit
	Timeouts int64 // calls that timed out

	// Opened is how many connections a client of Open has opened, including connections to sentinels. Closed is how
	// many of these connections have been closed. Both are 0 for a client of NewClient.
	Opened, Closed int64

	// LostTime is the total time in which at least one part was lost, including a current outage.
	LostTime time.Duration

	// Evicts is the name of the policy by which the store drops keys when its memory is full, such as allkeys-lru. A
	// dropped key no longer owes anything. Evicts is "" if the store drops no keys or does not report its policy. The
	// client checks once per second whether keys were dropped. If so, the store counts as lost until 20 seconds after
	// the last dropped key.
	Evicts string

	LastError string // error of the last failed call; "" if no call has failed
	// LastErrorKind is timeout, connection, certificate, forbidden, eviction, error, or the code of the store's reply,
	// such as readonly.
	LastErrorKind string
	LastErrorAt   time.Time // the zero Time if no call has failed
}

// Health returns the state of the store.
func (c *Client) Health() Health {
	breakers := c.link.Load().breakers
	h := Health{
		Parts: len(breakers), Calls: c.calls.Load(), Keys: c.keys.Load(),
		Failures: c.failed.Load(), Timeouts: c.timeouts.Load(), LostTime: c.condition.lost.time(time.Now),
	}
	if c.dialer != nil {
		h.Closed = c.dialer.closed.Load() // read first, so that Closed is never above Opened
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
