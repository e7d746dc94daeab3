package config

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/respdoor"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
)

// Redis is where clients of Redis ask. Their limits come with their commands.
type Redis struct {
	Address      string
	Mode         fs.FileMode // of the file of a Unix socket; 0 for DefaultMode
	TLS          *TLS        // nil for none
	AllowRemote  bool        // without a password, too
	PasswordFile string      // with a password on each line; "" for none
	PasswordEnv  string      // the name of a variable with one; "" for none
	Longest      time.Duration
	MaxKeys      int
	Overflow     engine.OverflowPolicy
	IdleTimeout  time.Duration // 0 for none
	ReusePort    bool
	State        string // file in which the keys are kept beyond the process; "" for none
}

// defaultLongest is as long as a bucket may take to fill if its times are to be exact to the nanosecond, in whole days.
const defaultLongest = 26 * 24 * time.Hour

// RedisAlone reports whether clients of Redis are the only ones, so that no rule is needed.
func (f *File) RedisAlone() bool { return f.Redis != nil && f.Decide == nil && len(f.Listen) == 0 }

// Policy returns the policy of the table.
func (r *Redis) Policy() engine.Policy { return engine.TokenBuckets(r.Longest) }

// NewLimiter returns the engine. The caller closes it. That the machine has not the memory is the only error.
func (r *Redis) NewLimiter(options ...engine.Option) (*engine.Limiter, error) {
	own := []engine.Option{engine.MaxKeys(r.MaxKeys), engine.Overflow(r.Overflow)}
	return engine.New(r.Policy(), append(own, options...)...)
}

// Memory is how many bytes the table takes; 0 for nil.
func (r *Redis) Memory() (uint64, error) {
	if r == nil {
		return 0, nil
	}
	return r.Policy().Bytes(r.MaxKeys)
}

// Passwords reads those that are good; none if the file names no place for them.
func (r *Redis) Passwords() (respdoor.Passwords, error) {
	switch {
	case r.PasswordFile != "":
		return respdoor.ReadPasswords(r.PasswordFile)
	case r.PasswordEnv != "":
		all, err := respdoor.ParsePasswords(os.Getenv(r.PasswordEnv))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.PasswordEnv, err)
		}
		return all, nil
	}
	return nil, nil
}

// Listener is the address with what is spoken under Redis' protocol.
func (r *Redis) Listener() Listener {
	return Listener{Address: r.Address, Mode: r.Mode, TLS: r.TLS, ReusePort: r.ReusePort}
}

// redis reads an address, or a mapping with one.
func (d *decoder) redis(n *yaml.Node) *Redis {
	r := &Redis{Longest: defaultLongest, MaxKeys: engine.DefaultMaxKeys}
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		r.Address = d.address(n, "redis")
		d.redisIsGuarded(n, r)
		return r
	}
	seen := d.mapping(n, "redis",
		d.addressField(&r.Address),
		modeField(d, &r.Mode),
		field{"tls", func(n *yaml.Node) { r.TLS = d.tls(n) }},
		d.yesField("allow_remote", &r.AllowRemote),
		field{"password_file", func(n *yaml.Node) { r.PasswordFile = d.passwordFile(n) }},
		field{"password_env", func(n *yaml.Node) { r.PasswordEnv = d.passwordEnv(n) }},
		d.durationField("longest", time.Second, 365*24*time.Hour, &r.Longest),
		d.integerField("max_keys", 1, 1<<31-1, &r.MaxKeys),
		field{"overflow", func(n *yaml.Node) { r.Overflow = d.overflow(n) }},
		d.durationField("idle_timeout", 0, longest, &r.IdleTimeout),
		d.yesField("reuse_port", &r.ReusePort),
	)
	if seen == nil {
		return nil
	}
	if seen["address"] == nil {
		d.Fail(n, "redis: no address: write for example address: 127.0.0.1:6380")
		return r
	}
	if seen["password_file"] != nil && seen["password_env"] != nil {
		d.Fail(seen["password_env"], "password_env: there is a password_file: leave one of the two out")
	}
	d.checkMode(seen["mode"], r.Address)
	d.checkReusePort(seen["reuse_port"], r.Listener())
	d.redisIsGuarded(seen["address"], r)
	return r
}

func (d *decoder) passwordFile(n *yaml.Node) string {
	s, ok := d.text(n, "password_file")
	if !ok {
		return ""
	}
	if s == "" {
		d.Fail(n, "password_file: want the name of a file with a password on each line")
		return ""
	}
	d.passwords = n
	return d.beside(s)
}

var environmentName = regexp.MustCompile("^[A-Za-z_][A-Za-z0-9_]*$")

func (d *decoder) passwordEnv(n *yaml.Node) string {
	s, ok := d.text(n, "password_env")
	if !ok {
		return ""
	}
	if !environmentName.MatchString(s) {
		// It may be a password, and so is not repeated.
		d.Fail(n, "password_env: want the name of a variable of the environment, such as WEIR_REDIS_PASSWORD")
		return ""
	}
	d.passwords = n
	return s
}

// redisIsGuarded refuses a listener that other machines reach without a password: any client may fill the table, and
// reset keys.
func (d *decoder) redisIsGuarded(at *yaml.Node, r *Redis) {
	if !r.AllowRemote && r.PasswordFile == "" && r.PasswordEnv == "" && isRemote(r.Address) {
		d.Fail(at, "redis: %s can be reached from other machines: say password_file, use 127.0.0.1, or say allow_remote: true", r.Address)
	}
}

// tryPasswords reads those that the file names.
func (d *decoder) tryPasswords(f *File) {
	if d.passwords == nil || f.Redis == nil {
		return
	}
	if _, err := f.Redis.Passwords(); err != nil {
		d.Fail(d.passwords, "redis: %v", err)
	}
}

// checkRedis keeps clients of Redis off the addresses that are others'.
func (d *decoder) checkRedis(f *File, n *yaml.Node) {
	if f.Redis == nil || f.Redis.Address == "" {
		return
	}
	d.notPublic(f, n, "redis", f.Redis.Address)
	if f.Admin != nil && overlap(f.Redis.Address, f.Admin.Address) {
		d.Fail(n, "redis: %s is the admin listener's, %s: choose another port", f.Redis.Address, f.Admin.Address)
	}
	if f.Decide != nil && overlap(f.Redis.Address, f.Decide.Address) {
		d.Fail(n, "redis: %s is the listener's for decisions, %s: choose another port", f.Redis.Address, f.Decide.Address)
	}
}

// compare says what becomes of the table of the file before.
func (r *Redis) compare(before *Redis) (Continuity, string) {
	switch {
	case r == nil || before == nil:
		return Add, ""
	case r.State != before.State: // in a file other processes count
		return Replace, fmt.Sprintf("its file was %s and is %s", named(before.State), named(r.State))
	case r.Longest != before.Longest:
		return Carry, fmt.Sprintf("longest was %v and is %v", before.Longest, r.Longest)
	case r.MaxKeys != before.MaxKeys:
		return Carry, fmt.Sprintf("max_keys was %d and is %d", before.MaxKeys, r.MaxKeys)
	case r.Overflow != before.Overflow:
		return Carry, fmt.Sprintf("overflow was %s and is %s", overflows[before.Overflow], overflows[r.Overflow])
	}
	return Keep, ""
}

func (r *Redis) describe(b *strings.Builder) {
	spoken := ""
	if r.TLS != nil {
		spoken = " (TLS)"
	}
	password := "no password"
	if r.PasswordFile != "" || r.PasswordEnv != "" {
		password = "with a password"
	}
	memory, _ := r.Memory() // Describe has tried it
	fmt.Fprintf(b, "redis     %s%s%s, %s; limits that fill within %v; %s for %s keys, then %s\n", r.Address, spoken,
		when(r.ReusePort, reusable), password, r.Longest, humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)), overflows[r.Overflow])
	if r.State != "" {
		fmt.Fprintf(b, "          state %s\n", r.State)
	}
}
