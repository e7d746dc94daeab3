package rulefile

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/resp"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// Redis has the settings of the listener for Redis clients. A command of such a client has the numbers of a limit, or
// the name of a limit in Limits.
type Redis struct {
	Address      string
	Mode         fs.FileMode // of the file of a Unix socket; 0 for DefaultMode
	TLS          *TLS        // nil for none
	AllowRemote  bool        // even without a password
	PasswordFile string      // file with one password per line; "" for none
	PasswordEnv  string      // name of an environment variable with a password; "" for none
	Longest      time.Duration
	Limits       []RedisLimit // limits that commands can name, in the order of the file
	MaxKeys      int
	Overflow     engine.OverflowPolicy
	IdleTimeout  time.Duration // 0 for none
	Negative     bool          // a negative quantity gives tokens back
	InFlight     time.Duration // how long a place in flight counts if it is not released; 0 for no places
	ReusePort    bool
	State        string // file that keeps the keys when the process ends; "" for none
}

// RedisAlone reports whether the server serves only Redis clients, and so needs no rules.
func (f *File) RedisAlone() bool { return f.Redis != nil && f.Decide == nil && len(f.Listen) == 0 }

// Policy returns the policy of the table.
func (r *Redis) Policy() engine.Policy { return engine.TokenBuckets(r.Longest) }

// NewLimiter returns the limiter for Redis clients. The caller must close it. An error says that there is too little
// memory. With [Redis.StateOptions], it can also be an error of [engine.Shared].
func (r *Redis) NewLimiter(options ...engine.Option) (*engine.Limiter, error) {
	base := []engine.Option{engine.MaxKeys(r.MaxKeys), engine.Overflow(r.Overflow)}
	return engine.New(r.Policy(), append(base, options...)...)
}

// Memory returns how many bytes the table takes. It returns 0 if r is nil.
func (r *Redis) Memory() (uint64, error) {
	if r == nil {
		return 0, nil
	}
	return engine.Bytes(r.Policy(), engine.MaxKeys(r.MaxKeys))
}

// Passwords reads the valid passwords. There are none without a password file or variable.
func (r *Redis) Passwords() (resp.Passwords, error) {
	switch {
	case r.PasswordFile != "":
		return resp.ReadPasswords(r.PasswordFile)
	case r.PasswordEnv != "":
		passwords, err := resp.ParsePasswords(os.Getenv(r.PasswordEnv))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.PasswordEnv, err)
		}
		return passwords, nil
	}
	return nil, nil
}

// Listener returns the address as a Listener, with TLS if configured.
func (r *Redis) Listener() Listener {
	return Listener{Address: r.Address, Mode: r.Mode, TLS: r.TLS, ReusePort: r.ReusePort}
}

func (r *Redis) section() section {
	return section{
		name: "redis", shorthand: "address", entries: []entry{
			addressEntry(&r.Address, "127.0.0.1:6380").withRange("a port of its own; loopback, unless there is a password or `allow_remote`"),
			modeEntry(&r.Mode),
			tlsEntry(&r.TLS),
			newEntry("allow_remote", boolean, &r.AllowRemote, "", "other machines may reach the address, even without a password"),
			newEntry("password_file", passwordFile, &r.PasswordFile, "",
				"a file with a password on each line, relative to the rule file: each is valid for `AUTH`, so that "+
					"clients can change from one to another. It is read again when it changes").withDefaultText("none: no client " +
				"needs one").withRange("1 to 16 passwords, 64KiB"),
			newEntry("password_env", passwordEnv, &r.PasswordEnv, "", "the name of an environment variable with the same contents").
				withRange("not with `password_file`"),
			newEntry("longest", duration(time.Second, spec.MaxWindow), &r.Longest, "624h",
				"the longest time that a bucket of a command may take to fill: (`max_burst` + 1) x `period` / "+
					"`count`. Up to `625h`, times are exact to the nanosecond. Above that, the clock advances in "+
					"steps: of 2 ns up to `1250h`, and of 16 ns up to a year").
				withDefaultText("`624h`, or as long as a limit of `limits` takes"),
			newEntry("limits", mapOf(mapping((*RedisLimit).section), readRedisLimits), &r.Limits, "",
				"limits by name, each a rate or a mapping, which commands name instead of numbers: see "+
					"[redis-door.md](redis-door.md#named-limits)").withRange("a name begins with a letter, and has letters, digits, `_`, `-` and `.`"),
			maxKeysEntry(&r.MaxKeys),
			overflowEntry(&r.Overflow),
			newEntry("in_flight", duration(resp.MinPlace, resp.MaxPlace), &r.InFlight, "", "how long a place of "+
				"`WEIR.ENTER` counts at least if it is not released. A reload cannot change it").withDefaultText("`WEIR.ENTER` is an error"),
			newEntry("negative_quantities", boolean, &r.Negative, "", "a negative quantity in `CL.THROTTLE` gives tokens "+
				"back, as in redis-cell. By default it is an error"),
			newEntry("idle_timeout", duration(0, maxTimeout), &r.IdleTimeout, "0s", "how long a connection may wait for its next command; 0s is no bound"),
			reusePortEntry(&r.ReusePort),
		},
		check: func(d *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) {
			if d.passwordsNode = cmp.Or(nodes["password_file"], nodes["password_env"]); d.passwordsNode != nil && nodes["password_file"] != nil &&
				nodes["password_env"] != nil {
				d.Fail(nodes["password_env"], "password_env: there is a password_file: leave one of the two out")
			}
			d.checkAddress(nodes, r.Listener())
			d.checkRedisLimits(r, nodes)
			// Otherwise any client could fill the table and reset keys.
			if !r.AllowRemote && r.PasswordFile == "" && r.PasswordEnv == "" && isRemote(r.Address) {
				d.Fail(nodes["address"], "redis: %s can be reached from other machines: write password_file, use "+
					"127.0.0.1, or write allow_remote: true",
					r.Address)
			}
		},
	}
}

var passwordFile = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if s == "" {
		d.Fail(n, "%s: want the name of a file with a password on each line", keyName)
		return ""
	}
	return d.resolvePath(s)
})

const environmentName = "^[A-Za-z_][A-Za-z0-9_]*$"

var passwordEnv = scalar(schema{"type": "string", "pattern": environmentName}, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if !regexp.MustCompile(environmentName).MatchString(s) {
		// The value may be a password by mistake, so the error must not repeat it.
		d.Fail(n, "%s: want the name of a variable of the environment, such as WEIR_REDIS_PASSWORD", keyName)
		return ""
	}
	return s
})

func (d *decoder) tryPasswords(f *File) {
	if d.passwordsNode == nil || f.Redis == nil {
		return
	}
	if _, err := f.Redis.Passwords(); err != nil {
		d.Fail(d.passwordsNode, "redis: %v", err)
	}
}

// compare returns what a reload does with the table of the previous file, and why.
func (r *Redis) compare(before *Redis) (Continuity, string) {
	switch {
	case r == nil || before == nil:
		return Add, ""
	case r.State != before.State && before.State != "": // other processes may count in this file
		return Replace, fmt.Sprintf("its file was %s and is %s", pathOrNone(before.State), pathOrNone(r.State))
	case r.State != before.State:
		return Carry, "it is in the file " + r.State + " now"
	case r.Longest != before.Longest:
		return Carry, fmt.Sprintf("longest was %v and is %v", before.Longest, r.Longest)
	case r.MaxKeys != before.MaxKeys:
		return Carry, fmt.Sprintf("max_keys was %d and is %d", before.MaxKeys, r.MaxKeys)
	case r.Overflow != before.Overflow:
		return Carry, fmt.Sprintf("overflow was %v and is %v", before.Overflow, r.Overflow)
	}
	return Keep, ""
}

func (r *Redis) describe() string {
	if r == nil {
		return ""
	}
	memory, _ := r.Memory() // Describe has checked it
	text := fmt.Sprintf("%s%s%s, %s; limits that fill within %v; %s for %s keys, then %v", r.Address, textIf(r.TLS != nil, " (TLS)"),
		textIf(r.ReusePort, reusePortText), textIf(r.PasswordFile+r.PasswordEnv == "", "no password")+
			textIf(r.PasswordFile+r.PasswordEnv != "", "with a password"),
		r.Longest, humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)), r.Overflow)
	for _, l := range r.Limits {
		text += fmt.Sprintf("\n          limit %s: %v", l.Name, l.Policy)
		if l.HasTable() {
			memory, _ := l.Rule(r).Memory() // checkRedisLimits has checked it
			text += fmt.Sprintf("; %s for %s keys", humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)))
		}
	}
	return text + textIf(r.State != "", "\n          state "+r.State)
}
