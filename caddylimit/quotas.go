package caddylimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dunglas/httpsfv"
	"go.uber.org/zap"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/quotas"
	"github.com/weir-go/weir/limits/spec"

	"github.com/weir-go/weir/caddylimit/internal/key"
	"github.com/weir-go/weir/caddylimit/internal/zone"
)

// Quotas are limits from outside the configuration. They come from one source. The source is a file or a hash in the
// store with the limits of keys, or a header that a trusted proxy sends.
type Quotas struct {
	// File is the name of a file that contains the limit of each key: JSON if the name ends in .json, otherwise CSV.
	File string `json:"file,omitempty"`
	// Hash is the name of a hash in the handler's store with the limit of each key.
	Hash string `json:"hash,omitempty"`
	// Every is how often the file or the hash is read: 1 s to a day, by default 1 minute.
	Every caddy.Duration `json:"every,omitempty"`
	// By is a text with placeholders that is looked up in the file or the hash. The default is the key of the limit.
	// This key must then be a single text.
	By string `json:"by,omitempty"`
	// Plans contains the numbers of plans, by the names that the file or the hash uses.
	Plans map[string]Numbers `json:"plans,omitempty"`
	// Header is a header field in the syntax of RateLimit-Policy. It is only read in requests from the server's trusted
	// proxies.
	Header string `json:"header,omitempty"`
	// Item is the value of the header's item that applies. The default is the name of the limit.
	Item string `json:"item,omitempty"`
	// Unknown is what happens to a request without a limit from outside. With default, the limit's own numbers apply.
	// With refuse, the request is refused.
	Unknown string `json:"unknown,omitempty"`
	// Max is the largest number of tokens that a limit from outside may have, 1 to 4,294,967,296. The default is a
	// million.
	Max uint64 `json:"max,omitempty"`
}

func (q *Quotas) check() error {
	sources := 0
	for _, source := range []string{q.File, q.Hash, q.Header} {
		if source != "" {
			sources++
		}
	}
	switch {
	case sources != 1:
		return errors.New("want one of file, hash and header")
	case q.Header != "" && (q.By != "" || q.Plans != nil || q.Every != 0):
		return errors.New("by, plan and every need a file or a hash: leave them out next to header")
	case q.Header != "" && quotas.CheckName(q.Header) != nil:
		return fmt.Errorf("header: %w", quotas.CheckName(q.Header))
	case q.Header == "" && q.Item != "":
		return fmt.Errorf("item %q: it needs a header: leave it out", q.Item)
	case q.Unknown != "" && q.Unknown != "default" && q.Unknown != "refuse":
		return fmt.Errorf("unknown %q: want default or refuse", q.Unknown)
	case q.Max > spec.MaxBurst:
		return fmt.Errorf("max %d: want 1 to %d", q.Max, uint64(spec.MaxBurst))
	case q.Every != 0 && (time.Duration(q.Every) < time.Second || time.Duration(q.Every) > 24*time.Hour):
		return fmt.Errorf("every %v: want 1s to 24h", time.Duration(q.Every))
	}
	return nil
}

// An outsideQuotas finds the limits that come from outside the configuration.
type outsideQuotas struct {
	*Quotas
	name    string        // name of the limit
	base    spec.Limit    // the limit's own numbers, with the plans as tiers
	unknown engine.Policy // for requests without a limit from outside
	plans   map[string]engine.Policy
}

// quotas makes a limit take its quotas from outside the configuration. storeSpec has the handler's store, and zoneSpec
// is the spec of the limit's zone.
func (l *Limit) quotas(ctx caddy.Context, app *zone.App, policy engine.Policy, storeSpec, zoneSpec zone.Spec, httpLimit *httplimit.Limit) ([]string, error) {
	o, err := l.outside(policy, zoneSpec)
	if err != nil {
		return nil, err
	}
	if o.Header != "" {
		httpLimit.Quota, httpLimit.QuotaElse = o.header(), o.unknown
		return nil, nil
	}
	lookupKey, warnings, err := l.lookup()
	if err != nil {
		return nil, err
	}
	source, err := o.source(app, storeSpec, lookupKey.Meant)
	if err != nil {
		return nil, err
	}
	table, err := quotas.Open(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.File+o.Hash, err)
	}
	interval := time.Duration(o.Every)
	if interval == 0 {
		interval = time.Minute
	}
	log := ctx.Logger().With(zap.String("limit", l.Name), zap.String("from", o.File+o.Hash))
	report := func(t *quotas.Table, err error) {
		if err != nil {
			log.Warn("limits not read: the previous ones stay active", zap.Error(err))
			return
		}
		log.Info("limits read", zap.Int("keys", t.Len()), zap.Int("different", t.Policies()), zap.Uint64("bytes", t.Bytes()))
	}
	report(table.Table(), nil)
	go table.Follow(ctx, interval, report)
	httpLimit.QuotaElse = policy
	httpLimit.Quota = func(r *http.Request) (engine.Policy, error) {
		if p, ok := table.Of(lookupKey.Lookup(r)); ok {
			return p, nil
		}
		return o.unknown, nil
	}
	return warnings, nil
}

func (l *Limit) outside(policy engine.Policy, zoneSpec zone.Spec) (o *outsideQuotas, err error) {
	o = &outsideQuotas{Quotas: l.Quotas, name: l.Name, plans: map[string]engine.Policy{}}
	o.base.Base, o.base.InStore = zoneSpec.Policy, zoneSpec.InStore(l.Name)
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.base.Numbers, err = (Numbers{l.Rate, l.Burst}).parse(); err != nil {
		return nil, err
	}
	if o.base.Quota = o.Max; o.base.Quota == 0 {
		o.base.Quota = spec.DefaultQuota
	}
	names := slices.Sorted(maps.Keys(o.Plans))
	for _, name := range names {
		numbers, err := o.Plans[name].parse()
		if err != nil {
			return nil, fmt.Errorf("plan %q: %w", name, err)
		}
		if _, err := spec.ParseRate(name); err == nil {
			return nil, fmt.Errorf("plan %q: the name is a rate, which a key may also have: use another name", name)
		}
		o.base.Tiers = append(o.base.Tiers, spec.Tier{Name: name, Numbers: numbers})
	}
	_, plans, err := o.base.Policies()
	if err != nil {
		return nil, err
	}
	for i, p := range plans {
		o.plans[names[i]] = p
	}
	if o.unknown = policy; o.Unknown == "refuse" {
		o.unknown = engine.Blocked()
	}
	return o, nil
}

// lookup returns the key whose text is looked up in the file or the hash.
func (l *Limit) lookup() (*key.Key, []string, error) {
	templates := l.Key
	if l.Quotas.By != "" {
		templates = []string{l.Quotas.By}
	}
	if len(templates) > 1 {
		return nil, nil, fmt.Errorf("the key has %d parts: name the part that has limits, such as by %s", len(templates), templates[0])
	}
	return l.keyOf(templates)
}

// source returns the function that reads the file or the hash. The function normalize converts each key of the file or
// the hash to the form of the texts that are looked up.
func (o *outsideQuotas) source(app *zone.App, storeSpec zone.Spec, normalize func(string) string) (quotas.Source, error) {
	numbers, err := o.base.Quotas()
	if err != nil {
		return nil, err
	}
	app.AtEnd(numbers.Close)
	reader := quotas.Reader{Plans: o.plans, Policy: numbers.Policy, Key: func(text string) (string, error) { return normalize(text), nil }}
	if o.File != "" {
		var file quotas.FileReader
		return func(context.Context) (*quotas.Table, error) { return file.Read(reader, o.File) }, nil
	}
	client, err := app.Store(storeSpec)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*quotas.Table, error) {
		return reader.Pairs(func(yield func(key, limit string) error) error { return client.Hash(ctx, o.Hash, yield) })
	}, nil
}

func (o *outsideQuotas) header() func(*http.Request) (engine.Policy, error) {
	field := quotas.Field{Limit: o.base, Name: o.Item}
	if field.Name == "" {
		field.Name = o.name
	}
	name := http.CanonicalHeaderKey(o.Header)
	return func(r *http.Request) (engine.Policy, error) {
		lines := r.Header[name]
		if len(lines) == 0 || !isTrusted(r) {
			return o.unknown, nil
		}
		p, ok, err := quotas.Read(&field, lines, httpsfv.UnmarshalList, asItem)
		switch {
		case err != nil:
			return p, fmt.Errorf("the header %s: %w", o.Header, err)
		case !ok:
			return o.unknown, nil
		}
		return p, nil
	}
}

func asItem(member httpsfv.Member) quotas.Item {
	item, _ := member.(httpsfv.Item)
	return quotas.Item{Value: item.Value, Param: item.Params.Get}
}
