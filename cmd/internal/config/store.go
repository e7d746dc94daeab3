package config

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit"
)

// A Store is a Redis or Valkey in which limits are kept, together with other machines.
type Store struct {
	URL     string        // as redislimit.Open takes it; it may have a password in it
	Prefix  string        // of the keys' names
	Timeout time.Duration // that a request waits for it at most
	Nodes   int           // that share the limits
	OnLoss  redislimit.FailurePolicy

	Partitions int
	Mode       redislimit.Mode
	Share      uint64 // of the limit that a machine admits with FailShare, in percent; 0: one of Nodes parts
	FullKeys   bool   // keys are not hashed
	Secret     string // that they are hashed with; "" for none

	Files redislimit.Files // by which it is connected to
}

// Redacted returns the URL without its password.
func (s *Store) Redacted() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "" // not after Parse
	}
	return u.Redacted()
}

// redacted returns a URL without its password, also where a mistake in its scheme hides that it has one:
// "redis//user:secret@host".
func redacted(u *url.URL) string {
	text := u.Redacted()
	at := strings.LastIndexByte(text, '@')
	if u.User != nil || at < 0 {
		return text
	}
	return text[:strings.LastIndexByte(text[:at], '/')+1] + "xxxxx" + text[at:]
}

// Same reports whether both keep the same keys: what else differs loses nothing.
func (s *Store) Same(other *Store) bool {
	return s == other || s != nil && other != nil && s.URL == other.URL && s.Prefix == other.Prefix &&
		s.Partitions == other.Partitions && s.FullKeys == other.FullKeys && s.Secret == other.Secret
}

// SameConnection reports whether both are connected to in the same way.
func (s *Store) SameConnection(other *Store) bool {
	return s.Timeout == other.Timeout && s.Files == other.Files
}

// Options returns what redislimit.Open takes beside the URL.
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

// StoreOptions returns what redislimit.New takes for a rule that is kept in a store.
func (r *Rule) StoreOptions() []redislimit.Option {
	options := []redislimit.Option{
		redislimit.Tiers(r.TierPolicies()...), redislimit.Nodes(r.Store.Nodes), redislimit.OnFailure(r.Store.OnLoss), redislimit.MaxKeys(r.MaxKeys),
		redislimit.InMode(r.Store.Mode),
	}
	if r.Store.Share > 0 {
		options = append(options, redislimit.LocalShare(float64(r.Store.Share)/100))
	}
	return options
}

// A storeWish is what a rule says about the store, and where.
type storeWish struct {
	rule, at *yaml.Node // at is nil if it says nothing
	want     bool
	beside   bool // the rule is the concurrency of one with a rate
}

var failurePolicies = []string{redislimit.FailShare.String(), redislimit.FailClosed.String(), redislimit.FailOpen.String()}

const exampleStore = "write for example redis://127.0.0.1:6379"

// store reads the URL of a store, or a mapping with one.
func (d *decoder) store(n *yaml.Node) *Store {
	s := &Store{Prefix: "weir", Timeout: 50 * time.Millisecond, Nodes: 4, Partitions: 64}
	if yamlfile.Target(n).Kind != yaml.MappingNode {
		s.URL = d.storeURL(n, "store")
		return s
	}
	seen := d.mapping(n, "store",
		field{"url", func(n *yaml.Node) { s.URL = d.storeURL(n, "url") }},
		field{"prefix", func(n *yaml.Node) { s.Prefix = d.storePrefix(n) }},
		field{"timeout", func(n *yaml.Node) { d.duration(n, "timeout", time.Millisecond, 10*time.Second, &s.Timeout) }},
		field{"nodes", func(n *yaml.Node) { d.integer(n, "nodes", 1, 100_000, &s.Nodes) }},
		field{"on_loss", func(n *yaml.Node) { s.OnLoss = d.onLoss(n) }},
		field{"share", func(n *yaml.Node) { s.Share = d.percent(n) }},
		field{"mode", func(n *yaml.Node) { s.Mode = d.storeMode(n) }},
		field{"partitions", func(n *yaml.Node) { d.integer(n, "partitions", 1, 4096, &s.Partitions) }},
		field{"keys", func(n *yaml.Node) { s.FullKeys = d.fullKeys(n) }},
		field{"secret", func(n *yaml.Node) { s.Secret = d.storeSecret(n) }},
		field{"ca", func(n *yaml.Node) { s.Files.CA, _ = d.text(n, "ca") }},
		field{"certificate", func(n *yaml.Node) { s.Files.Certificate, _ = d.text(n, "certificate") }},
		field{"certificate_key", func(n *yaml.Node) { s.Files.CertificateKey, _ = d.text(n, "certificate_key") }},
		field{"password_file", func(n *yaml.Node) { s.Files.Password, _ = d.text(n, "password_file") }},
	)
	if seen["secret"] != nil && s.FullKeys {
		d.Fail(seen["secret"], "secret: keys: full writes keys as they are: leave one of the two out")
	}
	if (s.Files.Certificate == "") != (s.Files.CertificateKey == "") {
		d.Fail(n, "store: certificate and certificate_key: want both or none")
	}
	if (s.Files.CA != "" || s.Files.Certificate != "") && s.URL != "" && !strings.HasPrefix(s.URL, "rediss://") {
		d.Fail(n, "store: ca and certificate are of a store over TLS: want a url that begins with rediss://")
	}
	if at := seen["password_file"]; at != nil && s.URL != "" {
		u, _ := url.Parse(s.URL) // as storeURL did
		if _, has := u.User.Password(); has {
			d.Fail(at, "password_file: the url has a password, too: leave one of the two out")
		}
		if u.Query().Has("master_set") {
			d.Fail(at, "password_file: Sentinel would be sent it, too: write the password into the url")
		}
	}
	if seen["share"] != nil && s.OnLoss != redislimit.FailShare {
		d.Fail(seen["share"], "share: on_loss: %v admits no share: leave one of the two out", s.OnLoss)
	}
	if seen != nil && seen["url"] == nil {
		d.Fail(n, "store: no url: %s", exampleStore)
	}
	return s
}

// storeURL reads the address of a store. A password in it is not repeated.
func (d *decoder) storeURL(n *yaml.Node, what string) string {
	s, ok := d.text(n, what)
	if !ok {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		d.Fail(n, "%s: not a URL; %s", what, exampleStore)
		return ""
	case u.Scheme != "redis" && u.Scheme != "rediss":
		d.Fail(n, "%s: %s: want a URL that begins with redis:// or rediss://; %s", what, yamlfile.Quote(redacted(u)), exampleStore)
		return ""
	case u.Hostname() == "":
		d.Fail(n, "%s: %s: the URL has no host; %s", what, yamlfile.Quote(redacted(u)), exampleStore)
		return ""
	}
	if _, err := rueidis.ParseURL(s); err != nil {
		if u.User == nil && strings.Contains(s, "@") || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
			d.Fail(n, "%s: a part of a password is no part of it, by its characters: write / as %%2F, # as %%23, ? as %%3F, @ as %%40", what)
			return ""
		}
		d.Fail(n, "%s: %s: %s", what, yamlfile.Quote(redacted(u)), strings.TrimPrefix(err.Error(), "redis: "))
		return ""
	}
	return s
}

func (d *decoder) storePrefix(n *yaml.Node) string {
	s, ok := d.text(n, "prefix")
	if ok && (s == "" || len(s) > 64 || strings.ContainsAny(s, "{}")) {
		d.Fail(n, "prefix: %s: want 1 to 64 characters, without braces", yamlfile.Quote(s))
	}
	return s
}

func (d *decoder) onLoss(n *yaml.Node) redislimit.FailurePolicy {
	word := failurePolicies[0]
	choice(d, n, "on_loss", failurePolicies, &word)
	for p := redislimit.FailShare; p <= redislimit.FailOpen; p++ {
		if p.String() == word {
			return p
		}
	}
	return redislimit.FailShare // not after choice
}

// percent reads a part of the limit.
func (d *decoder) percent(n *yaml.Node) (percent uint64) {
	text, ok := d.text(n, "share")
	if !ok {
		return 0
	}
	number, is := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseUint(number, 10, 64)
	if !is || err != nil || percent < 1 || percent > 100 {
		d.Fail(n, "share: %s: want 1%% to 100%%", yamlfile.Quote(text))
	}
	return percent
}

var storeModes = []string{redislimit.Auto.String(), redislimit.Strict.String()}

func (d *decoder) storeMode(n *yaml.Node) redislimit.Mode {
	word := storeModes[0]
	choice(d, n, "mode", storeModes, &word)
	if word == storeModes[1] {
		return redislimit.Strict
	}
	return redislimit.Auto
}

var storedKeys = []string{"hashed", "full"}

func (d *decoder) fullKeys(n *yaml.Node) bool {
	word := storedKeys[0]
	choice(d, n, "keys", storedKeys, &word)
	return word == storedKeys[1]
}

// storeSecret reads what keys are hashed with. It is not repeated.
func (d *decoder) storeSecret(n *yaml.Node) string {
	s, ok := d.text(n, "secret")
	if ok && len(s) < 16 {
		d.Fail(n, "secret: %d characters: want 16 at least", len(s))
	}
	return s
}

// checkStores decides of every rule whether it is kept in the store, and checks those that are.
func (d *decoder) checkStores(f *File) {
	broken := len(d.Errors) > 0
	for i := range f.Rules {
		r, wish := &f.Rules[i], d.wishes[i]
		reason := r.local()
		switch {
		case wish.at == nil && (f.Store == nil || !r.Counts()), wish.at != nil && !wish.want:
			continue
		case f.Store == nil:
			d.Fail(wish.at, "store: true, but the file has none: write for example store: redis://127.0.0.1:6379 outside the rules")
			continue
		case !r.Counts():
			d.Fail(wish.at, "store: a rate of %v needs no store: leave this out", r.Constant)
			continue
		case reason != "":
			remedy := "write store: false, and each machine counts by itself"
			if wish.beside {
				remedy = "write a rule of its own for it with store: false, and each machine counts by itself"
			}
			d.Fail(cmp.Or(wish.at, wish.rule), "the file has a store, and %s: %s", reason, remedy)
			continue
		}
		r.Store = f.Store
		if !broken && r.hasPolicy() {
			at := wish.at
			if at == nil {
				at = wish.rule
			}
			if err := redislimit.Check(r.Name, r.Policy, r.StoreOptions()...); err != nil {
				d.Fail(at, "store: %s", strings.ReplaceAll(err.Error(), "redislimit: ", ""))
			}
		}
	}
}

// local says why the rule cannot be kept in a store; "" if it can.
func (r *Rule) local() string {
	switch {
	case r.MaxWait > 0:
		return "tokens of a store cannot be waited for (max_wait)"
	case r.Spread:
		return "a bucket on all processors is on each machine (spread)"
	case r.IsInFlight():
		return "what is in flight is counted on each machine"
	case r.Policy.Algorithm() == engine.AlgorithmBatchRefill:
		return "batches are not kept in a store"
	case r.Overflow != engine.Evict:
		return "a store has room for every key, so that there is no overflow"
	}
	return ""
}
