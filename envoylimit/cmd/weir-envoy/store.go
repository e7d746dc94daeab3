package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/weir-go/weir/redislimit"
)

// A storeFlags says where the counters of several replicas are.
type storeFlags struct {
	RedisURL        string `name:"redis-url" env:"REDIS_URL" help:"Redis or Valkey that the replicas share: host:port, several for a cluster, the name of the master and the sentinels. Empty: counters are in memory."`
	RedisType       string `name:"redis-type" env:"REDIS_TYPE" default:"SINGLE" enum:"SINGLE,SENTINEL,CLUSTER,single,sentinel,cluster" help:"SINGLE, SENTINEL or CLUSTER."`
	RedisSocketType string `name:"redis-socket-type" env:"REDIS_SOCKET_TYPE" default:"tcp" enum:"tcp,unix" help:"tcp; the reference's unix is refused."`
	RedisAuth       string `name:"redis-auth" env:"REDIS_AUTH" help:"Password, or user:password."`
	RedisTLS        bool   `name:"redis-tls" env:"REDIS_TLS" help:"Use TLS."`
	RedisTLSCert    string `name:"redis-tls-cert" env:"REDIS_TLS_CLIENT_CERT" help:"File of the client's certificate."`
	RedisTLSKey     string `name:"redis-tls-key" env:"REDIS_TLS_CLIENT_KEY" help:"File of its key."`
	RedisTLSCA      string `name:"redis-tls-ca" env:"REDIS_TLS_CACERT" help:"File of the server's CA."`
	CacheKeyPrefix  string `env:"CACHE_KEY_PREFIX" default:"envoy" help:"What the names of keys in it begin with."`
}

// open connects to the store; nil if there is none.
func (f *storeFlags) open(ctx context.Context, log *slog.Logger) (*redislimit.Client, error) {
	if f.RedisURL == "" {
		return nil, nil
	}
	address, err := f.address()
	if err != nil {
		return nil, err
	}
	options := []redislimit.ClientOption{redislimit.Prefix(f.CacheKeyPrefix), redislimit.Logger(log)}
	if f.RedisTLS {
		settings, err := clientTLS(f.RedisTLSCert, f.RedisTLSKey, f.RedisTLSCA, "")
		if err != nil {
			return nil, err
		}
		options = append(options, redislimit.TLS(settings))
	}
	return redislimit.Open(ctx, address, options...)
}

// address is what the variables say, as redislimit.Open takes it.
func (f *storeFlags) address() (string, error) {
	if f.RedisSocketType == "unix" || strings.HasPrefix(f.RedisURL, "/") {
		return "", fmt.Errorf("REDIS_URL=%s with REDIS_SOCKET_TYPE=%s: want host:port and tcp", f.RedisURL, f.RedisSocketType)
	}
	u := url.URL{Scheme: "redis"}
	if f.RedisTLS {
		u.Scheme = "rediss"
	}
	if user, password, both := strings.Cut(f.RedisAuth, ":"); both {
		u.User = url.UserPassword(user, password)
	} else if f.RedisAuth != "" {
		u.User = url.UserPassword("", f.RedisAuth)
	}
	hosts := strings.Split(f.RedisURL, ",")
	query := url.Values{}
	switch kind := strings.ToUpper(f.RedisType); kind {
	case "SINGLE":
		if len(hosts) > 1 {
			return "", fmt.Errorf("REDIS_URL names %d servers with REDIS_TYPE=SINGLE: want one", len(hosts))
		}
	case "SENTINEL":
		if len(hosts) < 2 {
			return "", fmt.Errorf("REDIS_URL with REDIS_TYPE=SENTINEL: want the name of the master and the sentinels: " +
				"name,host:port,host:port")
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
			return "", fmt.Errorf("REDIS_URL: server %d is not host:port", i+1) // it may hold a password
		}
	}
	u.Host = hosts[0]
	for _, host := range hosts[1:] {
		query.Add("addr", host)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}
