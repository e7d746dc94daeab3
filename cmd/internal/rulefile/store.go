package rulefile

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
	"github.com/weir-go/weir/redislimit"
)

// A Store is a Redis or Valkey server that keeps limits, which several machines share.
type Store struct {
	URL     string        // in the form for redislimit.Open; it may contain a password
	Prefix  string        // beginning of the keys' names
	Timeout time.Duration // how long a request may wait for the store
	Nodes   int           // number of machines that share the limits
	OnLoss  redislimit.FailurePolicy

	Partitions int
	Mode       redislimit.Mode
	Share      uint64 // the percentage of the limit that a machine admits with FailShare; 0 means 1/Nodes
	FullKeys   bool   // the names of keys are not hashed
	Secret     string // the secret for hashing keys; "" for none

	Files redislimit.Files // files for the connections to the store
}

// Redacted returns the URL without its password.
func (s *Store) Redacted() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "" // not possible after Parse
	}
	return u.Redacted()
}

// redacted returns a URL without its password. It also removes a password that url.Parse misses because of a wrong
// scheme, as in "redis//user:secret@host".
func redacted(u *url.URL) string {
	text := u.Redacted()
	end := strings.LastIndexByte(text, '@')
	if u.User != nil || end < 0 {
		return text
	}
	return text[:strings.LastIndexByte(text[:end], '/')+1] + "xxxxx" + text[end:]
}

// Same reports whether both stores have the same keys, so that a change of the store loses no counts.
func (s *Store) Same(other *Store) bool {
	return s == other || s != nil && other != nil && s.URL == other.URL && s.Prefix == other.Prefix &&
		s.Partitions == other.Partitions && s.FullKeys == other.FullKeys && s.Secret == other.Secret
}

// SameConnection reports whether the connections to both stores have the same settings.
func (s *Store) SameConnection(other *Store) bool {
	return s.Timeout == other.Timeout && s.Files == other.Files
}

// Options returns the options for redislimit.Open.
func (s *Store) Options() []redislimit.ClientOption {
	options := []redislimit.ClientOption{
		redislimit.Prefix(s.Prefix), redislimit.Timeout(s.Timeout), redislimit.Partitions(s.Partitions),
		redislimit.FromFiles(s.Files),
	}
	if s.FullKeys {
		options = append(options, redislimit.FullKeys())
	}
	if s.Secret != "" {
		options = append(options, redislimit.Secret(s.Secret))
	}
	return options
}

// StorePolicy returns the policy that redislimit.New gets for a rule in a store.
func (r *Rule) StorePolicy() engine.Policy {
	if r.Quota != nil {
		return spec.StoredPolicy(r.Policy)
	}
	return r.Policy
}

// SameInStore reports whether two rules in a store would have equal limiters.
func (r *Rule) SameInStore(other *Rule) bool {
	return r.Name == other.Name && r.Store != nil && other.Store != nil && *r.Store == *other.Store &&
		r.StorePolicy() == other.StorePolicy() && slices.Equal(r.TierPolicies(), other.TierPolicies()) &&
		r.room() == other.room() && r.MaxKeys == other.MaxKeys && r.Debts == other.Debts && r.Key.Equal(other.Key)
}

// quotasInStore returns the function for the field InStore of a [spec.Limit].
func quotasInStore(r Rule, s *Store) func(engine.Policy, uint64) (func(engine.Policy) error, func(), error) {
	return func(base engine.Policy, room uint64) (func(engine.Policy) error, func(), error) {
		r := r
		r.Store, r.Policy, r.Quota = s, base, &Quota{Max: room}
		return redislimit.CheckQuotas(r.Name, r.StorePolicy(), r.StoreOptions()...)
	}
}

// StoreOptions returns the options that redislimit.New gets for a rule in a store.
func (r *Rule) StoreOptions() []redislimit.Option {
	options := []redislimit.Option{
		redislimit.Tiers(r.TierPolicies()...), redislimit.Nodes(r.Store.Nodes), redislimit.OnLoss(r.Store.OnLoss), redislimit.MaxKeys(r.MaxKeys),
		redislimit.InMode(r.Store.Mode),
	}
	if room := r.room(); room > 0 && r.StorePolicy() == r.Policy { // token buckets need no such option
		options = append(options, redislimit.MaxQuota(room))
	}
	if r.Debts != "" {
		options = append(options, redislimit.DebtFiles(r.Debts))
	}
	if r.Store.Share > 0 {
		options = append(options, redislimit.LocalShare(float64(r.Store.Share)/100))
	}
	return options
}

const exampleStore = "write for example redis://127.0.0.1:6379"

func (s *Store) section() section {
	return section{
		name: "store", shorthand: "url", check: s.check, entries: []entry{
			newEntry("url", storeURL, &s.URL, "",
				"`redis://host:port`, or `rediss://` for TLS, with `user:password@` before the host and `/database` "+
					"after the port. `?addr=host:port` names more nodes of a cluster; with `&master_set=name` they are sentinels").required(exampleStore),
			newEntry("prefix", storePrefix, &s.Prefix, "weir", "the prefix of all key names in the store").
				withRange("1 to 64 characters, no braces"),
			newEntry("timeout", duration(time.Millisecond, 10*time.Second), &s.Timeout, "50ms", "how long a request waits for the store"),
			newEntry("nodes", integer[int](1, 100_000), &s.Nodes, "4", "about how many machines share the limits"),
			newEntry("on_loss", choice(redislimit.FailShare, redislimit.FailClosed, redislimit.FailOpen), &s.OnLoss, "share",
				"what happens while the store is lost: with `share`, each machine admits its share, which is the "+
					"limit divided by `nodes`; with `closed`, requests are answered 503; with `open`, they pass"),
			newEntry("share", percent, &s.Share, "", "with `on_loss: share`, the part of the limit that a machine admits, such as `10%`").
				withDefaultText("1/`nodes`"),
			newEntry("mode", choice(redislimit.Auto, redislimit.Strict), &s.Mode, "auto",
				"`strict` asks the store about every request, except for a key that it refused in the last 100 ms; "+
					"`auto` spends tokens that the store has charged in advance, if the limit is large enough"),
			newEntry("partitions", integer[int](1, 4096), &s.Partitions, "64", "into how many parts a cluster divides the keys; it is part of the key names"),
			newEntry("keys", twoWords("hashed", "full"), &s.FullKeys, "hashed",
				"how keys are written to the store: `hashed`, or `full`, in clear text up to 256 bytes"),
			newEntry("secret", secret, &s.Secret, "",
				"a secret with which keys are hashed, so that a reader of the store cannot find out a key by trying candidates").
				withRange("at least 16 characters"),
			newEntry("ca", text, &s.Files.CA, "",
				"for `rediss://`: the file of the authority that signed the store's certificate, instead of the machine's authorities"),
			newEntry("certificate", text, &s.Files.Certificate, "", "for `rediss://`: the file of weir's client certificate"),
			newEntry("certificate_key", text, &s.Files.CertificateKey, "", "the file of its private key"),
			newEntry("password_file", text, &s.Files.Password, "",
				"a file with the password of the store's user, instead of one in the `url`; sentinels do not get it"),
		},
	}
}

func (s *Store) check(d *decoder, n *yaml.Node, nodes map[string]*yaml.Node) {
	if nodes["secret"] != nil && s.FullKeys {
		d.Fail(nodes["secret"], "secret: keys: full writes keys in clear text: leave one of the two out")
	}
	if (s.Files.Certificate == "") != (s.Files.CertificateKey == "") {
		d.Fail(n, "store: certificate and certificate_key: want both or none")
	}
	if (s.Files.CA != "" || s.Files.Certificate != "") && s.URL != "" && !strings.HasPrefix(s.URL, "rediss://") {
		d.Fail(n, "store: ca and certificate need TLS: want a url that begins with rediss://")
	}
	if node := nodes["password_file"]; node != nil && s.URL != "" {
		u, _ := url.Parse(s.URL) // storeURL has checked it
		if _, hasPassword := u.User.Password(); hasPassword {
			d.Fail(node, "password_file: the url has a password, too: leave one of the two out")
		}
	}
	if nodes["share"] != nil && s.OnLoss != redislimit.FailShare {
		d.Fail(nodes["share"], "share: on_loss: %v admits no share: leave one of the two out", s.OnLoss)
	}
}

func (s *Store) describe() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s, %d %s; if it is lost: %v", s.Redacted(), s.Nodes, english.PluralWord(s.Nodes, "node", ""), s.OnLoss)
}

// storeURL describes a store's URL. Errors do not repeat a password.
var storeURL = scalar(pattern("redis://host:port", "^[Rr][Ee][Dd][Ii][Ss][Ss]?://.+"), func(d *decoder, n *yaml.Node, keyName, s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		d.Fail(n, "%s: not a URL; %s", keyName, exampleStore)
		return ""
	case u.Scheme != "redis" && u.Scheme != "rediss":
		d.Fail(n, "%s: %s: want a URL that begins with redis:// or rediss://; %s", keyName, yamlfile.Quote(redacted(u)), exampleStore)
		return ""
	case u.Hostname() == "":
		d.Fail(n, "%s: %s: the URL has no host; %s", keyName, yamlfile.Quote(redacted(u)), exampleStore)
		return ""
	case !isPort(u):
		d.Fail(n, "%s: %s: the port %s is not valid: want 1 to 65535", keyName, yamlfile.Quote(redacted(u)), u.Port())
		return ""
	}
	if err := redislimit.CheckAddress(s); err != nil {
		if u.User == nil && strings.Contains(s, "@") || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
			d.Fail(n, "%s: a part of the password is cut off by its special characters: write / as %%2F, # as %%23, ? as %%3F, @ as %%40", keyName)
			return ""
		}
		if cause := errors.Unwrap(err); cause != nil {
			err = cause
		}
		text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "redislimit: "), "redis: ")
		d.Fail(n, "%s: %s: %s", keyName, yamlfile.Quote(redacted(u)), text)
		return ""
	}
	return s
})

var storePrefix = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if s == "" || len(s) > 64 || strings.ContainsAny(s, "{}") {
		d.Fail(n, "%s: %s: want 1 to 64 characters, without braces", keyName, yamlfile.Quote(s))
	}
	return s
})

// percent describes a part of the limit, in percent.
var percent = scalar(schema{"type": "string", "pattern": "^[0-9]+%$"}, func(d *decoder, n *yaml.Node, keyName, s string) uint64 {
	number, hasSign := strings.CutSuffix(s, "%")
	percent, err := strconv.ParseUint(number, 10, 64)
	if !hasSign || err != nil || percent < 1 || percent > 100 {
		d.Fail(n, "%s: %s: want 1%% to 100%%", keyName, yamlfile.Quote(s))
	}
	return percent
}).withRange("1% to 100%")

// secret describes the secret for hashing keys. Errors do not repeat it.
var secret = scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if len(s) < 16 {
		d.Fail(n, "%s: %d characters: want at least 16", keyName, len(s))
	}
	return s
})
