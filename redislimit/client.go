package redislimit

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/redislimit/internal/defaults"
)

// A Client is the connection to one Redis or Valkey deployment, the store. Make a client with [Open] or [NewClient] and
// share it between limiters. All methods may be called from any goroutine.
type Client struct {
	link           atomic.Pointer[link]
	ownsConnection bool // Open made the connection, so Close closes it
	clientConfig
	joining       sync.WaitGroup     // the goroutine that joins a store which did not answer Open
	cancelJoining context.CancelFunc // ends the joining goroutine; nil if there is none

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

// A ClientOption changes one thing about a client.
type ClientOption func(*clientConfig) error

// Prefix sets the prefix of all key names in the store, "weir" by default. It has 1 to 64 characters, without control
// characters. Braces are not allowed either, because they would choose the slot in a cluster.
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
// process runs counts. If the store answers but many questions come at once, a question also waits for its turn. This
// takes at most two seconds, or the timeout if that is longer.
func Timeout(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		if d < time.Millisecond || d > 10*time.Second {
			return fmt.Errorf("redislimit: Timeout(%v): want 1ms to 10s", d)
		}
		c.timeout = d
		return nil
	}
}

// Partitions sets the number of hash tags, which group the keys for a cluster: 1 to 4,096, 64 by default. One call to a
// cluster may carry several keys of one tag. Every node must use the same number.
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
// minute, 200ms by default. The time starts when the first of these calls was sent.
func BreakAfter(d time.Duration) ClientOption {
	return func(c *clientConfig) error {
		if d < time.Millisecond || d > time.Minute {
			return fmt.Errorf("redislimit: BreakAfter(%v): want 1ms to 1m", d)
		}
		c.breakAfter = d
		return nil
	}
}

// TLS sets the configuration with which [Open] connects to a rediss:// address. Without a ServerName, the host of the
// address is used.
func TLS(config *tls.Config) ClientOption {
	return func(c *clientConfig) error {
		if config == nil {
			return errors.New("redislimit: TLS(nil): want a configuration")
		}
		c.tls = config.Clone()
		return nil
	}
}

// SentinelUser sets the user name and the password for the sentinels. An empty user is the default user. Without this
// option, [Open] sends no password to them.
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
// If the store does not answer within five seconds, or before the context is done, Open returns an error that matches
// [ErrStore]. With [JoinLater], this is not an error. Open also returns an error if the user may not run the scripts
// ([Rights]).
func Open(ctx context.Context, address string, options ...ClientOption) (*Client, error) {
	config, err := newClientConfig(options)
	if err != nil {
		return nil, err
	}
	redisOptions, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if config.tls != nil {
		if redisOptions.TLSConfig == nil {
			return nil, errors.New("redislimit: TLS: the address does not begin with rediss://")
		}
		if config.tls.ServerName == "" {
			config.tls.ServerName = redisOptions.TLSConfig.ServerName
		}
		redisOptions.TLSConfig = config.tls
		if redisOptions.Sentinel.TLSConfig != nil {
			redisOptions.Sentinel.TLSConfig = config.tls
		}
	}
	// With short timeouts, the client notices soon when the store is back.
	redisOptions.Dialer = net.Dialer{Timeout: 500 * time.Millisecond, KeepAlive: time.Second}
	redisOptions.ConnWriteTimeout = time.Second
	redisOptions.DisableCache, redisOptions.DisableRetry = true, true
	redisOptions.ClientName = "weir"
	if config.sentinelPassword != "" {
		if redisOptions.Sentinel.MasterSet == "" {
			return nil, errors.New("redislimit: SentinelUser: the address has no master_set")
		}
		redisOptions.Sentinel.Username, redisOptions.Sentinel.Password = config.sentinelUser, config.sentinelPassword
	}
	// A refresh finds a new master that no sentinel has announced.
	redisOptions.Sentinel.Dialer, redisOptions.Sentinel.ClientName = redisOptions.Dialer, redisOptions.ClientName
	redisOptions.Sentinel.TopologyRefreshInterval = 2 * time.Second
	dialer, err := newDialer(config, &redisOptions)
	if err != nil {
		return nil, err
	}
	c := &Client{clientConfig: config, ownsConnection: true, dialer: dialer, limiters: newLimiters()}
	if err := c.connect(ctx, redisOptions); err != nil && (!c.joinLater || ctx.Err() != nil || !isTemporary(err)) {
		return nil, err
	} else if err != nil {
		c.startLost(redisOptions, err)
	}
	return c, nil
}

// CheckAddress returns an error if [Open] would not accept the address. It connects to nothing.
func CheckAddress(address string) error {
	_, err := parseAddress(address)
	return err
}

// parseAddress accepts only the parameters that [Open] describes. [rueidis.ParseURL] ignores a misspelled parameter. It
// has others that must not come with an address: skip_verify would accept every certificate, and limiters that wait for
// a store depend on the timeouts that Open sets.
func parseAddress(address string) (rueidis.ClientOption, error) {
	redisOptions, err := rueidis.ParseURL(address)
	if err != nil {
		return redisOptions, badAddress(address, err)
	}
	_, query, _ := strings.Cut(address, "?")
	if strings.Contains(query, "@") { // it may be a part of the password
		return redisOptions, badAddress(address, nil)
	}
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return redisOptions, badAddress(address, err)
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if name != "addr" && name != "master_set" {
			return redisOptions, fmt.Errorf("redislimit: parameter %q of the store's address: want addr or master_set", name)
		}
	}
	for _, node := range parameters["addr"] { // in another text, rueidis would replace a part by the first node's
		if host, port, err := net.SplitHostPort(node); err != nil || host == "" || port == "" {
			return redisOptions, fmt.Errorf("redislimit: addr=%s in the store's address: want host:port", node)
		}
	}
	if names := parameters["master_set"]; len(names) > 1 {
		return redisOptions, fmt.Errorf("redislimit: the store's address has %d parameters master_set: want one", len(names))
	}
	return redisOptions, nil
}

// badAddress returns the error for an invalid address, without a part that may be the password.
func badAddress(address string, cause error) error {
	const want = "redislimit: the store's address is not redis://[[user]:password@]host:port[/database]"
	if strings.Contains(address, "@") {
		return errors.New(want + "; in a password write %40 for @, %2F for /, %3A for :, %23 for # and %3F for ?")
	}
	return fmt.Errorf("%s: %w", want, cause)
}

func newNoAnswer(o rueidis.ClientOption, cause error) error {
	return noAnswer{fmt.Errorf("redislimit: the store at %s does not answer: %w", strings.Join(o.InitAddress, ", "), cause)}
}

type noAnswer struct{ error }

func (noAnswer) Is(target error) bool { return target == ErrStore }
func (e noAnswer) Unwrap() error      { return e.error }

// NewClient makes a client of an existing connection, which should drop a dead peer within about a second
// (ConnWriteTimeout). [Client.Close] leaves it open.
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

// Close closes the connections, if [Open] made them. Close the client's limiters first. Debts that are not charged by
// then are lost ([Limiter.Settle]). Close waits at most two seconds for calls that the server has not answered. While
// requests of closed limiters are in flight ([Limiter.Enter]), the connections stay open, but Close does not wait for
// them.
//
// The wait is bounded, because pipe.Close of rueidis v1.0.79 may wait forever for the answer to its PING. The cause is
// a concurrent call. It counts itself as waiting before pipe.Close reads the count, but reads no answers because
// pipe.Close has then changed the connection's state. The connection is closed by then, so only one goroutine leaks.
func (c *Client) Close() error {
	c.limiters.registry.end()
	if c.limiters.flights.close() {
		c.disconnect()
	}
	return nil
}

func (c *Client) disconnect() {
	if !c.ownsConnection {
		return
	}
	if c.cancelJoining != nil {
		c.cancelJoining()
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

// closeTime is longer than the second after which rueidis closes a silent connection.
const closeTime = 2 * time.Second

// Health is the state of a store as a client sees it.
type Health struct {
	Parts    int   // parts that can fail independently: a cluster's partitions; 1 without a cluster or an answer
	Lost     int   // parts that are lost because they do not answer; all parts if the store drops keys
	Calls    int64 // script calls made
	Keys     int64 // keys in these calls
	Failures int64 // failed calls, including timeouts, and keys whose value is not the state of a limit
	Timeouts int64 // calls that timed out

	// Opened counts the connections that [Open]'s client has opened, including connections to sentinels. Closed counts
	// how many of them have been closed. Both are 0 for a client of [NewClient].
	Opened, Closed int64

	// LostTime is the total time in which at least one part was lost, including a current outage.
	LostTime time.Duration

	// Evicts is the name of the policy by which the store drops keys when its memory is full, such as allkeys-lru. It
	// is "" if the store drops none or does not report its policy. If keys are dropped, the store counts as lost until
	// 20 seconds after the last drop.
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
		Failures: c.failed.Load(), Timeouts: c.timeouts.Load(), LostTime: c.condition.outage.totalTime(time.Now),
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
	if last := c.condition.lastFailure.Load(); last != nil {
		h.LastError, h.LastErrorKind, h.LastErrorAt = last.err.Error(), kindOf(last.err), last.at
	}
	return h
}
