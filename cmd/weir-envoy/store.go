package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/weir-go/weir/redislimit"
)

// storeFlags has the flags for the stores that have the counters of all replicas.
type storeFlags struct {
	RedisURL        string        `name:"redis-url" env:"REDIS_URL" help:"Redis or Valkey that the replicas share: host:port or redis://[user]:password@host, several for a cluster; the name of the master and the sentinels for Sentinel. Empty: counters are in memory."`
	RedisType       string        `name:"redis-type" env:"REDIS_TYPE" default:"SINGLE" enum:"SINGLE,SENTINEL,CLUSTER,single,sentinel,cluster" help:"SINGLE, SENTINEL or CLUSTER."`
	RedisSocketType string        `name:"redis-socket-type" env:"REDIS_SOCKET_TYPE" default:"tcp" enum:"tcp,unix" help:"tcp; the reference's unix is refused."`
	RedisAuth       string        `name:"redis-auth" env:"REDIS_AUTH" help:"Password, or user:password."`
	RedisTLS        bool          `name:"redis-tls" env:"REDIS_TLS" help:"Use TLS to REDIS_URL."`
	RedisTLSCert    string        `name:"redis-tls-cert" env:"REDIS_TLS_CLIENT_CERT" help:"File of the client's certificate."`
	RedisTLSKey     string        `name:"redis-tls-key" env:"REDIS_TLS_CLIENT_KEY" help:"File of the client certificate's private key."`
	RedisTLSCA      string        `name:"redis-tls-ca" env:"REDIS_TLS_CACERT" help:"File of the server's CA."`
	OnLoss          string        `name:"redis-on-loss" env:"REDIS_ON_LOSS" default:"closed" enum:"closed,share,open" help:"What happens while REDIS_URL does not answer, also at the start. closed: an error, as in the reference; share: each of REPLICAS admits its share; open: everything is admitted. (Weir's own.)"`
	State           string        `name:"redis-state" env:"REDIS_STATE" help:"Full path of a folder for files with the debts of this replica to REDIS_URL, such as the tokens that its share has admitted: these debts outlive the process. (Weir's own; Linux.)"`
	CacheKeyPrefix  string        `env:"CACHE_KEY_PREFIX" help:"Prefix of the key names in the store; envoy if it is empty."`
	LocalCache      int           `name:"local-cache-size-in-bytes" env:"LOCAL_CACHE_SIZE_IN_BYTES" help:"With a store: bytes for remembering exceeded fixed windows, which then refuse without asking the store until they end. 0: none."`
	RedisTimeout    time.Duration `name:"redis-timeout" env:"REDIS_TIMEOUT" help:"How long an answer of the store may take, 1ms to 10s. 0: 50ms."`
	RedisTLSAnyName bool          `name:"redis-tls-skip-hostname-verification" env:"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION" help:"Accept any name in a server's certificate that the CA has signed."`
	SentinelAuth    string        `name:"redis-sentinel-auth" env:"REDIS_SENTINEL_AUTH" help:"Password of the sentinels, or user:password."`

	RetryInitial time.Duration `name:"redis-startup-initial-interval" env:"REDIS_STARTUP_INITIAL_INTERVAL" default:"1s" help:"First wait for a store that does not answer at the start. Each further one is twice as long."`
	RetryMax     time.Duration `name:"redis-startup-max-interval" env:"REDIS_STARTUP_MAX_INTERVAL" default:"30s" help:"Longest wait for the store at the start."`
	RetryTotal   time.Duration `name:"redis-startup-max-elapsed-time" env:"REDIS_STARTUP_MAX_ELAPSED_TIME" help:"How long to wait in total before the start fails. 0: forever."`

	PerSecond           bool   `name:"redis-persecond" env:"REDIS_PERSECOND" help:"Count limits per second in a separate Redis or Valkey."`
	PerSecondURL        string `name:"redis-persecond-url" env:"REDIS_PERSECOND_URL" help:"Address of the store of REDIS_PERSECOND, in the form of REDIS_URL."`
	PerSecondType       string `name:"redis-persecond-type" env:"REDIS_PERSECOND_TYPE" default:"SINGLE" enum:"SINGLE,SENTINEL,CLUSTER,single,sentinel,cluster" help:"SINGLE, SENTINEL or CLUSTER."`
	PerSecondSocketType string `name:"redis-persecond-socket-type" env:"REDIS_PERSECOND_SOCKET_TYPE" default:"tcp" enum:"tcp,unix" help:"tcp; the reference's unix is refused."`
	PerSecondAuth       string `name:"redis-persecond-auth" env:"REDIS_PERSECOND_AUTH" help:"Password, or user:password."`
	PerSecondTLS        bool   `name:"redis-persecond-tls" env:"REDIS_PERSECOND_TLS" help:"Use TLS, with the same files as REDIS_URL."`
	PerSecondSentinel   string `name:"redis-persecond-sentinel-auth" env:"REDIS_PERSECOND_SENTINEL_AUTH" help:"Password of the sentinels of REDIS_PERSECOND_URL, or user:password."`

	PerSecondTimeout time.Duration `name:"redis-persecond-timeout" env:"REDIS_PERSECOND_TIMEOUT" help:"How long an answer of REDIS_PERSECOND_URL may take, 1ms to 10s. 0: as REDIS_TIMEOUT."`
}

// stores has the stores of shared counters. The store perSecond is for the limits per second, and the store general is
// for the other limits. If perSecond is nil, the store general has every limit. Both are nil if counters are in memory.
type stores struct{ general, perSecond *redislimit.Client }

func (s stores) close() {
	for _, store := range []*redislimit.Client{s.general, s.perSecond} {
		if store != nil {
			store.Close()
		}
	}
}

// open connects to the stores, and waits for a store that does not answer.
func (f *storeFlags) open(ctx context.Context, log *slog.Logger, environment []string) (s stores, err error) {
	if f.RedisURL == "" {
		return stores{}, f.checkNoAddress(environment)
	}
	if f.PerSecond && f.PerSecondURL == "" {
		return stores{}, errors.New("REDIS_PERSECOND without REDIS_PERSECOND_URL: want its address")
	}
	for name, d := range map[string]time.Duration{
		"REDIS_STARTUP_INITIAL_INTERVAL": f.RetryInitial, "REDIS_STARTUP_MAX_INTERVAL": f.RetryMax,
	} {
		if d < time.Millisecond {
			return stores{}, fmt.Errorf("%s=%s: want a millisecond or more", name, d)
		}
	}
	s.general, err = f.connect(ctx, log, redisServer{
		"REDIS", f.RedisURL, f.RedisType, f.RedisSocketType, f.RedisAuth, f.SentinelAuth, f.RedisTLS, f.RedisTimeout,
	})
	if err != nil || !f.PerSecond {
		return s, err
	}
	s.perSecond, err = f.connect(ctx, log, redisServer{
		"REDIS_PERSECOND", f.PerSecondURL, f.PerSecondType, f.PerSecondSocketType, f.PerSecondAuth, f.PerSecondSentinel,
		f.PerSecondTLS, cmp.Or(f.PerSecondTimeout, f.RedisTimeout),
	})
	if err != nil {
		s.close()
	}
	return s, err
}

// checkNoAddress returns an error if REDIS_URL is not set, but a variable is set that has an effect only with it.
// Otherwise replicas would unexpectedly count in memory, each for itself.
func (f *storeFlags) checkNoAddress(environment []string) error {
	var names []string
	for name, value := range setVariables(environment) {
		if strings.HasPrefix(name, "REDIS_") || name == "BACKEND_TYPE" && strings.EqualFold(value, "redis") {
			names = append(names, name)
		}
	}
	fields := reflect.TypeFor[storeFlags]()
	for i := range fields.NumField() {
		field, value := fields.Field(i), reflect.ValueOf(f).Elem().Field(i)
		name := field.Tag.Get("env")
		if !value.IsZero() && fmt.Sprint(value) != field.Tag.Get("default") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("REDIS_URL is not set, but %s: set its address, or remove them to count in memory",
		strings.Join(slices.Compact(names), ", "))
}

// connect opens a store. It keeps trying, with longer and longer waits. If the program may start without the store,
// connect does not wait.
func (f *storeFlags) connect(ctx context.Context, log *slog.Logger, server redisServer) (*redislimit.Client, error) {
	address, err := server.address()
	if err != nil {
		return nil, err
	}
	options := []redislimit.ClientOption{redislimit.Prefix(f.prefix()), redislimit.Logger(log)}
	if f.OnLoss != "closed" {
		options = append(options, redislimit.JoinLater())
	}
	if server.timeout != 0 {
		options = append(options, redislimit.Timeout(server.timeout))
	}
	if server.sentinelAuth != "" {
		options = append(options, redislimit.SentinelUser(userPassword(server.sentinelAuth)))
	}
	if strings.HasPrefix(address, "rediss://") {
		options = append(options, redislimit.FromFiles(redislimit.Files{
			CA: f.RedisTLSCA, Certificate: f.RedisTLSCert, CertificateKey: f.RedisTLSKey, AnyName: f.RedisTLSAnyName,
		}))
	}
	intervals := backoff.NewExponentialBackOff()
	intervals.InitialInterval, intervals.MaxInterval, intervals.Multiplier = f.RetryInitial, f.RetryMax, 2
	return backoff.Retry(ctx, func() (*redislimit.Client, error) {
		c, err := redislimit.Open(ctx, address, options...)
		if err != nil && !errors.Is(err, redislimit.ErrStore) {
			err = backoff.Permanent(err)
		}
		return c, err
	}, backoff.WithBackOff(intervals), backoff.WithMaxElapsedTime(f.RetryTotal), backoff.WithNotify(func(err error, wait time.Duration) {
		log.Warn("the store does not answer; the start waits for it", "variable", server.name+"_URL", "retry", wait, "error", err)
	}))
}

// A redisServer has the settings of a Redis or Valkey server. They come from the environment variables whose names
// begin with the text in name.
type redisServer struct {
	name, url, kind, socket, auth, sentinelAuth string
	tls                                         bool
	timeout                                     time.Duration
}

func (s redisServer) address() (_ string, err error) {
	if s.socket == "unix" || strings.HasPrefix(s.url, "/") {
		return "", fmt.Errorf("%s_URL=%s with %s_SOCKET_TYPE=%s: want host:port and tcp", s.name, s.url, s.name, s.socket)
	}
	u := url.URL{Scheme: "redis"}
	if s.tls {
		u.Scheme = "rediss"
	}
	if s.auth != "" {
		u.User = url.UserPassword(userPassword(s.auth))
	}
	hosts := strings.Split(s.url, ",")
	query := url.Values{}
	switch kind := strings.ToUpper(s.kind); kind {
	case "SINGLE":
		if len(hosts) > 1 {
			return "", fmt.Errorf("%s_URL names %d servers with %s_TYPE=SINGLE: want one", s.name, len(hosts), s.name)
		}
	case "SENTINEL":
		if len(hosts) < 2 {
			return "", fmt.Errorf("%s_URL with %s_TYPE=SENTINEL: want the name of the master and the sentinels: "+
				"name,host:port,host:port", s.name, s.name)
		}
		query.Set("master_set", hosts[0])
		hosts = hosts[1:]
	case "CLUSTER":
		if len(hosts) < 2 {
			hosts = append(hosts, hosts[0]) // a second address means a cluster
		}
	}
	for i, host := range hosts {
		if strings.Contains(host, "://") {
			if hosts[i], err = s.merge(&u, i+1, host); err != nil {
				return "", err
			}
		} else if _, _, err := net.SplitHostPort(host); err != nil || strings.ContainsAny(host, "?#/") {
			return "", fmt.Errorf("%s_URL: server %d is not host:port", s.name, i+1) // the text may be a password
		}
	}
	u.Host = hosts[0]
	for _, host := range hosts[1:] {
		query.Add("addr", host)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// merge copies the scheme, user, password and database from a server's URL into u. It returns the host and port. Errors
// do not repeat the URL, because it may have a password.
func (s redisServer) merge(u *url.URL, number int, text string) (host string, err error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" || parsed.Scheme != "redis" && parsed.Scheme != "rediss" || strings.Contains(parsed.Path+parsed.Fragment, "@") {
		return "", fmt.Errorf("%s_URL: server %d is not redis://[[user]:password@]host[:port][/database]; "+
			"in a password write %%40 for @, %%2F for /, %%3A for :, %%23 for # and %%3F for ?", s.name, number)
	}
	if parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" {
		return "", fmt.Errorf("%s_URL: server %d has something after ? or #: want nothing, because other variables set what there is to "+
			"set; in a password write %%3F for ? and %%23 for #", s.name, number)
	}
	if parsed.Scheme == "rediss" {
		u.Scheme = parsed.Scheme
	}
	if parsed.User != nil {
		if u.User != nil && u.User.String() != parsed.User.String() {
			return "", fmt.Errorf("%s_URL: server %d has another user or password than %s_AUTH or another server: want one", s.name, number, s.name)
		}
		u.User = parsed.User
	}
	if parsed.Path != "" && parsed.Path != "/" {
		u.Path = parsed.Path
	}
	return net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "6379")), nil
}

// debts returns the path prefix of the files that record debts to the stores. It may be "". The prefix depends on the
// stores, because a debt to one store must not be charged to another.
func (f *storeFlags) debts() string {
	if f.State == "" {
		return ""
	}
	hash := fnv.New64a()
	for _, text := range []string{f.RedisURL, f.PerSecondURL} {
		for part := range strings.SplitSeq(text, ",") {
			_, host, _ := strings.Cut(part, "@") // without the user and the password
			_, _ = fmt.Fprintf(hash, "%s,", cmp.Or(host, part))
		}
		_, _ = hash.Write([]byte{'\n'})
	}
	_, _ = hash.Write([]byte(f.prefix()))
	return filepath.Join(f.State, fmt.Sprintf("envoy-%016x", hash.Sum64()))
}

func (f *storeFlags) prefix() string { return cmp.Or(f.CacheKeyPrefix, "envoy") }

// userPassword splits the value of a variable. The value is a password, or user:password.
func userPassword(auth string) (user, password string) {
	if user, password, found := strings.Cut(auth, ":"); found {
		return user, password
	}
	return "", auth
}
