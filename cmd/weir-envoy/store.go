package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/weir-go/weir/redislimit"
)

// A storeFlags says where the counters of several replicas are.
type storeFlags struct {
	RedisURL        string        `name:"redis-url" env:"REDIS_URL" help:"Redis or Valkey that the replicas share: host:port, several for a cluster, the name of the master and the sentinels. Empty: counters are in memory."`
	RedisType       string        `name:"redis-type" env:"REDIS_TYPE" default:"SINGLE" enum:"SINGLE,SENTINEL,CLUSTER,single,sentinel,cluster" help:"SINGLE, SENTINEL or CLUSTER."`
	RedisSocketType string        `name:"redis-socket-type" env:"REDIS_SOCKET_TYPE" default:"tcp" enum:"tcp,unix" help:"tcp; the reference's unix is refused."`
	RedisAuth       string        `name:"redis-auth" env:"REDIS_AUTH" help:"Password, or user:password."`
	RedisTLS        bool          `name:"redis-tls" env:"REDIS_TLS" help:"Use TLS."`
	RedisTLSCert    string        `name:"redis-tls-cert" env:"REDIS_TLS_CLIENT_CERT" help:"File of the client's certificate."`
	RedisTLSKey     string        `name:"redis-tls-key" env:"REDIS_TLS_CLIENT_KEY" help:"File of its key."`
	RedisTLSCA      string        `name:"redis-tls-ca" env:"REDIS_TLS_CACERT" help:"File of the server's CA."`
	CacheKeyPrefix  string        `env:"CACHE_KEY_PREFIX" help:"What the names of keys in it begin with; envoy if it is empty."`
	RedisTimeout    time.Duration `name:"redis-timeout" env:"REDIS_TIMEOUT" help:"How long an answer of it may take. 0: 50ms, the most is 10s."`

	PerSecond           bool   `name:"redis-persecond" env:"REDIS_PERSECOND" help:"Limits per second are counted in a Redis or Valkey of their own."`
	PerSecondURL        string `name:"redis-persecond-url" env:"REDIS_PERSECOND_URL" help:"Its address, as REDIS_URL."`
	PerSecondType       string `name:"redis-persecond-type" env:"REDIS_PERSECOND_TYPE" default:"SINGLE" enum:"SINGLE,SENTINEL,CLUSTER,single,sentinel,cluster" help:"SINGLE, SENTINEL or CLUSTER."`
	PerSecondSocketType string `name:"redis-persecond-socket-type" env:"REDIS_PERSECOND_SOCKET_TYPE" default:"tcp" enum:"tcp,unix" help:"tcp; the reference's unix is refused."`
	PerSecondAuth       string `name:"redis-persecond-auth" env:"REDIS_PERSECOND_AUTH" help:"Password, or user:password."`
	PerSecondTLS        bool   `name:"redis-persecond-tls" env:"REDIS_PERSECOND_TLS" help:"Use TLS, with the files of the other."`
}

// stores are where counters are shared: that of the limits per second is nil where it is the other one, and both are
// nil where counters are in memory.
type stores struct{ all, perSecond *redislimit.Client }

func (s stores) close() {
	for _, one := range []*redislimit.Client{s.all, s.perSecond} {
		if one != nil {
			one.Close()
		}
	}
}

// open connects to the stores.
func (f *storeFlags) open(ctx context.Context, log *slog.Logger) (opened stores, err error) {
	switch {
	case f.PerSecond && f.RedisURL == "":
		return stores{}, errors.New("REDIS_PERSECOND without REDIS_URL: want the address of both")
	case f.PerSecond && f.PerSecondURL == "":
		return stores{}, errors.New("REDIS_PERSECOND without REDIS_PERSECOND_URL: want its address")
	case f.RedisURL == "":
		return stores{}, nil
	}
	opened.all, err = f.connect(ctx, log, redisServer{
		"REDIS", f.RedisURL, f.RedisType, f.RedisSocketType, f.RedisAuth, f.RedisTLS,
	})
	if err != nil || !f.PerSecond {
		return opened, err
	}
	opened.perSecond, err = f.connect(ctx, log, redisServer{
		"REDIS_PERSECOND", f.PerSecondURL, f.PerSecondType, f.PerSecondSocketType, f.PerSecondAuth, f.PerSecondTLS,
	})
	if err != nil {
		opened.close()
	}
	return opened, err
}

// connect opens one of them.
func (f *storeFlags) connect(ctx context.Context, log *slog.Logger, s redisServer) (*redislimit.Client, error) {
	address, err := s.address()
	if err != nil {
		return nil, err
	}
	options := []redislimit.ClientOption{redislimit.Prefix(cmp.Or(f.CacheKeyPrefix, "envoy")), redislimit.Logger(log)}
	if f.RedisTimeout != 0 {
		options = append(options, redislimit.Timeout(f.RedisTimeout))
	}
	if s.tls {
		settings, err := clientTLS(f.RedisTLSCert, f.RedisTLSKey, f.RedisTLSCA, "")
		if err != nil {
			return nil, err
		}
		options = append(options, redislimit.TLS(settings))
	}
	return redislimit.Open(ctx, address, options...)
}

// A redisServer is a Redis or Valkey as the variables that begin with its name say.
type redisServer struct {
	name, url, kind, socket, auth string
	tls                           bool
}

// address is what the variables say, as redislimit.Open takes it.
func (s redisServer) address() (string, error) {
	if s.socket == "unix" || strings.HasPrefix(s.url, "/") {
		return "", fmt.Errorf("%s_URL=%s with %s_SOCKET_TYPE=%s: want host:port and tcp", s.name, s.url, s.name, s.socket)
	}
	u := url.URL{Scheme: "redis"}
	if s.tls {
		u.Scheme = "rediss"
	}
	if user, password, both := strings.Cut(s.auth, ":"); both {
		u.User = url.UserPassword(user, password)
	} else if s.auth != "" {
		u.User = url.UserPassword("", s.auth)
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
			hosts = append(hosts, hosts[0]) // a second address is what tells a cluster
		}
	}
	for i, host := range hosts {
		if one, err := url.Parse(host); err == nil && (one.Scheme == "redis" || one.Scheme == "rediss") {
			host, hosts[i] = one.Host, one.Host
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			return "", fmt.Errorf("%s_URL: server %d is not host:port", s.name, i+1) // it may hold a password
		}
	}
	u.Host = hosts[0]
	for _, host := range hosts[1:] {
		query.Add("addr", host)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}
