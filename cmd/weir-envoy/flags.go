package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/engine"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/sealed"
)

// serveCommand has flags for variables of the reference (envoyproxy/ratelimit), with the same names and defaults. If a
// flag does not exist in the reference, its help says that it is weir's own.
type serveCommand struct {
	storeFlags   `embed:""`
	tracingFlags `embed:""`

	Host      string `env:"HOST" default:"0.0.0.0" help:"Address of /healthcheck and /json."`
	Port      int    `env:"PORT" default:"8080" help:"Port of /healthcheck and /json."`
	DebugHost string `env:"DEBUG_HOST" default:"0.0.0.0" help:"Address of the live page, /rlconfig and /stats."`
	DebugPort int    `env:"DEBUG_PORT" default:"6070" help:"Port of the live page, /rlconfig and /stats."`

	GRPCHost                  string        `name:"grpc-host" env:"GRPC_HOST" default:"0.0.0.0" help:"Address for Envoy."`
	GRPCPort                  int           `name:"grpc-port" env:"GRPC_PORT" default:"8081" help:"Port for Envoy."`
	GRPCUDS                   string        `name:"grpc-uds" env:"GRPC_UDS" help:"Unix socket for Envoy, instead of address and port."`
	GRPCMaxConnectionAge      time.Duration `name:"grpc-max-connection-age" env:"GRPC_MAX_CONNECTION_AGE" default:"24h" help:"How long a connection of Envoy may last."`
	GRPCMaxConnectionAgeGrace time.Duration `name:"grpc-max-connection-age-grace" env:"GRPC_MAX_CONNECTION_AGE_GRACE" default:"1h" help:"How much longer a connection of Envoy may last if calls are in progress."`
	GRPCUseTLS                bool          `name:"grpc-tls" env:"GRPC_SERVER_USE_TLS" help:"Use TLS on the port for Envoy."`
	GRPCCertificate           string        `name:"grpc-certificate" env:"GRPC_SERVER_TLS_CERT" help:"File of the certificate of the port for Envoy."`
	GRPCKey                   string        `name:"grpc-key" env:"GRPC_SERVER_TLS_KEY" help:"File of the private key of that certificate."`
	GRPCClientCA              string        `name:"grpc-client-ca" env:"GRPC_CLIENT_TLS_CACERT" help:"File of the CA of clients' certificates, which are then required."`
	GRPCClientName            string        `name:"grpc-client-name" env:"GRPC_CLIENT_TLS_SAN" help:"Name that a client's certificate must have."`

	LogLevel  string `env:"LOG_LEVEL" default:"WARN" help:"trace, debug, info, warn, error, fatal or panic."`
	LogFormat string `env:"LOG_FORMAT" default:"text" enum:"text,json,TEXT,JSON" help:"text or json."`

	ConfigType                        string `env:"CONFIG_TYPE" default:"FILE" enum:"FILE,GRPC_XDS_SOTW" help:"Where rules come from: FILE or GRPC_XDS_SOTW."`
	ForceStartWithoutInitialConfig    bool   `env:"FORCE_START_WITHOUT_INITIAL_CONFIG" help:"Answer requests before there are rules."`
	HealthyWithAtLeastOneConfigLoaded bool   `env:"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED" help:"Be healthy only with rules."`
	MergeDomainConfig                 bool   `env:"MERGE_DOMAIN_CONFIG" help:"Several files may have one domain."`

	RuntimeRoot         string `env:"RUNTIME_ROOT" default:"/srv/runtime_data/current" help:"Directory of the rules: RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY."`
	RuntimeSubdirectory string `env:"RUNTIME_SUBDIRECTORY" help:"Directory below RUNTIME_ROOT."`
	RuntimeAppdirectory string `env:"RUNTIME_APPDIRECTORY" default:"config" help:"Directory below RUNTIME_SUBDIRECTORY, with the files of rules."`

	XDSServer         string            `name:"xds-server" env:"CONFIG_GRPC_XDS_SERVER_URL" default:"localhost:18000" help:"The xDS server."`
	XDSNode           string            `name:"xds-node" env:"CONFIG_GRPC_XDS_NODE_ID" default:"default" help:"The name of this node for the xDS server."`
	XDSMetadata       map[string]string `name:"xds-metadata" env:"CONFIG_GRPC_XDS_NODE_METADATA" mapsep:"," help:"Metadata of this node: key=value,..."`
	XDSHeaders        pairs             `name:"xds-headers" env:"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS" help:"Headers for the xDS server: key:value,..."`
	XDSBackoffInitial time.Duration     `name:"xds-backoff-initial" env:"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL" default:"10s" help:"First wait after the xDS server is lost, and before a second refusal in a row."`
	XDSBackoffMax     time.Duration     `name:"xds-backoff-max" env:"XDS_CLIENT_BACKOFF_MAX_INTERVAL" default:"60s" help:"Longest wait for the xDS server."`
	XDSBackoffFactor  float64           `name:"xds-backoff-factor" env:"XDS_CLIENT_BACKOFF_RANDOM_FACTOR" default:"2" help:"Factor from one wait to the next. With 1 or less, as with the reference's 0.5, all waits are equal."`
	XDSBackoffJitter  bool              `name:"xds-backoff-jitter" env:"XDS_CLIENT_BACKOFF_JITTER" default:"true" negatable:"" help:"Each wait is random between half and all of its length."`
	XDSMaxMessage     int               `name:"xds-max-message" env:"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES" help:"Largest configuration in bytes. 0: 16 MiB."`
	XDSUseTLS         bool              `name:"xds-tls" env:"CONFIG_GRPC_XDS_SERVER_USE_TLS" help:"Use TLS to the xDS server."`
	XDSCertificate    string            `name:"xds-certificate" env:"CONFIG_GRPC_XDS_CLIENT_TLS_CERT" help:"File of the client's certificate."`
	XDSKey            string            `name:"xds-key" env:"CONFIG_GRPC_XDS_CLIENT_TLS_KEY" help:"File of the client certificate's private key."`
	XDSCA             string            `name:"xds-ca" env:"CONFIG_GRPC_XDS_SERVER_TLS_CACERT" help:"File of the server's CA."`
	XDSName           string            `name:"xds-name" env:"CONFIG_GRPC_XDS_SERVER_TLS_SAN" help:"Name in the xDS server's certificate."`

	NearLimitRatio float32 `env:"NEAR_LIMIT_RATIO" default:"0.8" help:"Share of a limit from which hits count as near."`
	StopWhenOver   bool    `env:"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT" help:"If limits of a request are exceeded, charge only these."`
	ShadowMode     bool    `env:"SHADOW_MODE" help:"Refuse nothing."`
	QuotaMode      bool    `env:"QUOTA_MODE" help:"All rules are in quota mode."`
	Metadata       bool    `env:"RESPONSE_DYNAMIC_METADATA" help:"Put the request and the rules' metadata into the answer."`

	Headers          bool   `env:"LIMIT_RESPONSE_HEADERS_ENABLED" help:"Tell the client about its limit."`
	AllHeaders       bool   `env:"LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED" help:"Tell the client about all its limits: RateLimit-Policy and RateLimit list them."`
	HeaderLimit      string `env:"LIMIT_LIMIT_HEADER" default:"RateLimit-Limit" help:"Header of the limit."`
	HeaderRemaining  string `env:"LIMIT_REMAINING_HEADER" default:"RateLimit-Remaining" help:"Header of the remaining hits."`
	HeaderReset      string `env:"LIMIT_RESET_HEADER" default:"RateLimit-Reset" help:"Header of the seconds until the window ends."`
	RequestHeaders   bool   `env:"LIMIT_REQUEST_HEADERS_ENABLED" help:"Tell the upstream about the client's limit."`
	RequestLimit     string `env:"LIMIT_REQUEST_LIMIT_HEADER" default:"RateLimit-Limit" help:"Header of the limit for the upstream."`
	RequestRemaining string `env:"LIMIT_REQUEST_REMAINING_HEADER" default:"RateLimit-Remaining" help:"Header of the remaining hits, for the upstream."`
	RequestReset     string `env:"LIMIT_REQUEST_RESET_HEADER" default:"RateLimit-Reset" help:"Header of the seconds until the window ends, for the upstream."`

	UseStatsd          bool          `env:"USE_STATSD" default:"true" help:"Send statistics to statsd."`
	StatsdHost         string        `env:"STATSD_HOST" default:"localhost" help:"Host of statsd."`
	StatsdPort         int           `env:"STATSD_PORT" default:"8125" help:"Port of statsd."`
	StatsdProtocol     string        `env:"STATSD_PROTOCOL" default:"tcp" enum:"tcp,udp" help:"tcp or udp."`
	ExtraTags          pairs         `env:"EXTRA_TAGS" help:"Tags for statsd: key:value,..."`
	StatsFlushInterval time.Duration `env:"STATS_FLUSH_INTERVAL" default:"10s" help:"How often statistics are sent to statsd."`
	DisableStats       bool          `env:"DISABLE_STATS" help:"Send no statistics to statsd."`
	UsePrometheus      bool          `env:"USE_PROMETHEUS" help:"Serve metrics for Prometheus."`
	PrometheusAddr     string        `env:"PROMETHEUS_ADDR" default:":9090" help:"Address of the metrics for Prometheus."`
	PrometheusPath     string        `env:"PROMETHEUS_PATH" default:"/metrics" help:"Path of the metrics for Prometheus."`
	PrometheusMapper   string        `name:"prometheus-mapper" env:"PROMETHEUS_MAPPER_YAML" help:"File in the format of statsd_exporter with the names of metrics. Without it, the default names."`

	PrometheusMilliseconds bool `name:"prometheus-milliseconds" env:"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS" help:"Response times are milliseconds under the same default name, which says seconds."`

	MaxKeys        int           `env:"MAX_KEYS" default:"1000000" help:"Largest number of counters for each length of window. (This flag and the following are weir's own.)"`
	Replicas       int           `env:"REPLICAS" help:"How many replicas share REDIS_URL: token buckets of 100/s and more are then decided from leases, and a share is the limit divided by it. 0: every decision asks the store."`
	Overflow       string        `name:"max-keys-overflow" env:"MAX_KEYS_OVERFLOW" default:"evict" enum:"evict,refuse" help:"What happens to a new counter in a full table: evict the counter with the fewest hits, or refuse the new one."`
	ReservationKey string        `name:"reservation-key-file" env:"RESERVATION_KEY_FILE" help:"File of 32 or more random bytes that seals the ids of Kuadrant's reservations: replicas and restarts with the same file accept them. Without it they are valid for this process only."`
	ReservationFor time.Duration `name:"reservation-lifetime" env:"RESERVATION_LIFETIME" default:"10m" help:"How long a reservation may give tokens back, 1s to 24h."`
	MaxStats       int           `env:"MAX_STATS" default:"10000" help:"Largest number of names in statistics that come from requests."`
	GRPCMaxStreams uint32        `name:"grpc-max-streams" env:"GRPC_MAX_STREAMS" default:"1000" help:"Largest number of concurrent calls on a connection."`
	GRPCMaxMessage int           `name:"grpc-max-message" env:"GRPC_MAX_MESSAGE" default:"1048576" help:"Largest request in bytes."`
	GRPCConnect    time.Duration `name:"grpc-connection-timeout" env:"GRPC_CONNECTION_TIMEOUT" default:"10s" help:"How long a new connection may take until its first call, including the TLS handshake."`
	Drain          time.Duration `env:"DRAIN" default:"10s" help:"How long requests in progress may take at the end. In the rest of this time REDIS_URL is charged with what was admitted while it was lost."`
	DebugKeys      string        `env:"DEBUG_KEYS" default:"hashed" enum:"hashed,full,off" help:"How the live page at the debug port shows descriptors that are refused: hashed, full or off."`
	DebugReset     bool          `env:"DEBUG_RESET" help:"Allow everyone who reaches the debug port to reset counters."`
	DebugHosts     []string      `env:"DEBUG_HOSTS" help:"Names that the Host header of a request to the live page may have, besides localhost and addresses: name,..."`
	DebugPprof     bool          `env:"DEBUG_PPROF" help:"Serve profiles at the debug port."`
}

// pairs is a map. A variable has it as text: key:value,...
type pairs map[string]string

// UnmarshalText parses the pairs. The parser of the command line calls it.
func (p *pairs) UnmarshalText(text []byte) error {
	*p = pairs{}
	if len(text) == 0 {
		return nil
	}
	for pair := range strings.SplitSeq(string(text), ",") {
		key, value, found := strings.Cut(pair, ":")
		if !found || key == "" {
			return fmt.Errorf("%q: want key:value,key:value", pair)
		}
		(*p)[key] = value
	}
	return nil
}

// Validate refuses invalid numbers. The parser of the command line calls it before anything starts.
func (c *serveCommand) Validate() error {
	for name, port := range map[string]int{
		"PORT": c.Port, "DEBUG_PORT": c.DebugPort, "GRPC_PORT": c.GRPCPort, "STATSD_PORT": c.StatsdPort,
	} {
		if port < 0 || port > math.MaxUint16 {
			return fmt.Errorf("%s=%d: want 0 to %d", name, port, math.MaxUint16)
		}
	}
	for name, d := range map[string]time.Duration{
		"STATS_FLUSH_INTERVAL": c.StatsFlushInterval, "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL": c.XDSBackoffInitial,
		"XDS_CLIENT_BACKOFF_MAX_INTERVAL": c.XDSBackoffMax,
		"GRPC_MAX_CONNECTION_AGE":         c.GRPCMaxConnectionAge, "GRPC_MAX_CONNECTION_AGE_GRACE": c.GRPCMaxConnectionAgeGrace,
		"DRAIN": c.Drain, "GRPC_CONNECTION_TIMEOUT": c.GRPCConnect,
	} {
		if d < time.Millisecond {
			return fmt.Errorf("%s=%s: want a millisecond or more", name, d)
		}
	}
	if c.GRPCMaxStreams < 1 {
		return fmt.Errorf("GRPC_MAX_STREAMS=%d: want 1 or more", c.GRPCMaxStreams)
	}
	if c.GRPCMaxMessage < 1 {
		return fmt.Errorf("GRPC_MAX_MESSAGE=%d: want 1 or more bytes", c.GRPCMaxMessage)
	}
	if c.XDSMaxMessage < 0 {
		return fmt.Errorf("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=%d: want 0 or more bytes", c.XDSMaxMessage)
	}
	if math.IsNaN(c.XDSBackoffFactor) || c.XDSBackoffFactor < 0 {
		return fmt.Errorf("XDS_CLIENT_BACKOFF_RANDOM_FACTOR=%g: want 0 or more", c.XDSBackoffFactor)
	}
	if d := c.ReservationFor; d < sealed.MinLifetime || d > sealed.MaxLifetime {
		return fmt.Errorf("RESERVATION_LIFETIME=%s: want %s to %s", d, sealed.MinLifetime, sealed.MaxLifetime)
	}
	if c.OnLoss == "share" && c.Replicas < 1 {
		return fmt.Errorf("REDIS_ON_LOSS=share with REPLICAS=%d: want the number of replicas that share the limits", c.Replicas)
	}
	if c.State != "" && !filepath.IsAbs(c.State) {
		return fmt.Errorf("REDIS_STATE=%s: want the full path of a folder", c.State)
	}
	if !strings.HasPrefix(c.PrometheusPath, "/") {
		return fmt.Errorf("PROMETHEUS_PATH=%s: want a path that begins with a slash", c.PrometheusPath)
	}
	if c.MaxKeys < 1 {
		return fmt.Errorf("MAX_KEYS=%d: want 1 or more", c.MaxKeys)
	}
	return c.validateHeaders()
}

// validateHeaders refuses what Envoy could not add to a request or an answer.
func (c *serveCommand) validateHeaders() error {
	for name, header := range map[string]string{
		"LIMIT_LIMIT_HEADER": c.HeaderLimit, "LIMIT_REMAINING_HEADER": c.HeaderRemaining, "LIMIT_RESET_HEADER": c.HeaderReset,
		"LIMIT_REQUEST_LIMIT_HEADER": c.RequestLimit, "LIMIT_REQUEST_REMAINING_HEADER": c.RequestRemaining,
		"LIMIT_REQUEST_RESET_HEADER": c.RequestReset,
	} {
		if !httpguts.ValidHeaderFieldName(header) {
			return fmt.Errorf("%s=%q: want the name of a header, such as RateLimit-Limit", name, header)
		}
	}
	return nil
}

var losses = map[string]envoy.Loss{"closed": envoy.Closed, "share": envoy.Share, "open": envoy.Open}

var overflows = map[string]engine.OverflowPolicy{"evict": engine.Evict, "refuse": engine.Refuse}

func (c *serveCommand) options() envoy.Options {
	o := envoy.Options{
		MaxKeys: c.MaxKeys, NearLimitRatio: &c.NearLimitRatio, ShadowMode: c.ShadowMode, QuotaMode: c.QuotaMode,
		Replicas: c.Replicas, Overflow: overflows[c.Overflow], StopWhenOver: c.StopWhenOver, DynamicMetadata: c.Metadata, MaxStats: c.MaxStats,
		MemoBytes: c.LocalCache, AllHeaders: c.AllHeaders, OnLoss: losses[c.OnLoss], Debts: c.debts(),
		ReservationKey: c.ReservationKey, ReservationLifetime: c.ReservationFor,
	}
	if c.Headers {
		o.ResponseHeaders = envoy.Headers{Limit: c.HeaderLimit, Remaining: c.HeaderRemaining, Reset: c.HeaderReset}
	}
	if c.RequestHeaders {
		o.RequestHeaders = envoy.Headers{Limit: c.RequestLimit, Remaining: c.RequestRemaining, Reset: c.RequestReset}
	}
	return o
}

// clientTLS returns the configuration for connections to a TLS server. The parameters certificate and key are the
// client's files, and ca is the file of a private CA. The server's certificate must have the name in name, or the
// server's address if name is "". Each parameter may be "".
func clientTLS(certificate, key, ca, name string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in it", ca)
		}
	}
	return config, nil
}
