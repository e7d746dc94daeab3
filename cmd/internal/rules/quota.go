package rules

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/quotas"
)

// A lookup finds the limit of a request if the limit is not in the rule. It is then in a table by the request's key, or
// in a header.
type lookup struct {
	of    *rulefile.Quota
	by    httplimit.KeyFunc
	own   engine.Policy
	table *quotas.Live // nil for a header, and for a hash that was not read yet

	field  *quotas.Field // reads a header; nil if the limit is not in a header
	trusts func(*http.Request) bool
}

// newLookup reads the file with the limits of a rule's quota. An error for a mistake has the line. If the limits are in
// a hash, [Rule.ReadHash] reads them later.
func (r *Rule) newLookup(client Client, trusts func(*http.Request) bool) (l *lookup, err error) {
	l = &lookup{of: r.Quota, own: r.PolicyIn(0), trusts: trusts}
	if r.Quota.Header != "" {
		unit := ""
		if r.Tokens != nil {
			unit = r.Tokens.Unit()
		}
		l.field = r.Quota.Field(unit)
		return l, nil
	}
	if l.by, err = partKey(r.Quota.By, client.Key, &r.Match); err != nil || r.Quota.File == "" {
		return l, err
	}
	l.table, err = quotas.Open(context.Background(), func(context.Context) (*quotas.Table, error) {
		return l.read(func(in quotas.Reader) (*quotas.Table, error) { return in.File(r.Quota.File) })
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Quota.File, unwrapped(err))
	}
	return l, nil
}

// A Hash is a function that yields the fields and values of a hash in a store. It may yield a field several times.
type Hash func(ctx context.Context, name string, yield func(field, value string) error) error

// ReadHash reads the hash with the limits of the rule's quota. Until then, no key has a limit from the hash. To get
// changes, read the result again. The result is nil if the quota has no hash.
func (r *Rule) ReadHash(ctx context.Context, hash Hash) (*quotas.Live, error) {
	if r.Quota == nil || r.Quota.Hash == "" {
		return nil, nil
	}
	table, err := quotas.Open(ctx, func(ctx context.Context) (*quotas.Table, error) {
		return r.lookup.read(func(in quotas.Reader) (*quotas.Table, error) {
			return in.Pairs(func(yield func(key, limit string) error) error { return hash(ctx, r.Quota.Hash, yield) })
		})
	})
	if err != nil {
		return nil, fmt.Errorf("rule %s: quota: hash %s: %w", r.Name, r.Quota.Hash, err)
	}
	r.UseHash(table)
	return table, nil
}

// UseHash makes the rule use a table that ReadHash has returned for another rule. The other rule must have the same key
// and quota. UseHash must not be called while requests are in progress.
func (r *Rule) UseHash(table *quotas.Live) { r.lookup.table = table }

// read makes a reader for the keys and plans of the rule. It passes the reader to the function by, which returns the
// table.
func (l *lookup) read(by func(quotas.Reader) (*quotas.Table, error)) (*quotas.Table, error) {
	q := l.of
	numbers, err := q.Numbers()
	if err != nil {
		return nil, err
	}
	defer numbers.Close()
	in := quotas.Reader{Plans: map[string]engine.Policy{}, Policy: numbers.Policy, Key: func(text string) (string, error) {
		request, source := blank(), meant(q.By, text)
		if _, err := netip.ParseAddr(text); source.Kind == rulefile.SourceIP && err != nil {
			return "", errors.New("a key that is not an address, and the limits are by ip")
		}
		write(request, source, text)
		key, ok := l.by.Text(request)
		if !ok || !carries(request, source, text) || strings.HasPrefix(key, "number:") { // no request can have this key
			return "", fmt.Errorf("a key that no request can have as its %s", q.By)
		}
		return key, nil
	}}
	for _, p := range q.Plans {
		in.Plans[p.Name] = p.Policy
	}
	return by(in)
}

// unwrapped removes the name of the file from an error of the system.
func unwrapped(err error) error {
	if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
		return bad.Err
	}
	return err
}

// policy returns the limit of a request. An error means that the request's header is wrong.
func (l *lookup) policy(request *http.Request) (engine.Policy, error) {
	if l.field != nil {
		return l.told(request)
	}
	if key, ok := l.by.Text(request); ok && l.table != nil {
		if p, ok := l.table.Of(key); ok {
			return p, nil
		}
	}
	return l.other(), nil
}

// The method told returns the limit in the header of a trusted proxy.
func (l *lookup) told(request *http.Request) (engine.Policy, error) {
	lines := request.Header[l.of.Header]
	if len(lines) == 0 || !l.trusts(request) {
		return l.other(), nil
	}
	p, ok, err := quotas.Read(l.field, lines, httpsfv.UnmarshalList, asItem)
	switch {
	case err != nil:
		return p, fmt.Errorf("the header %s: %w", l.of.Header, err)
	case !ok:
		return l.other(), nil
	}
	return p, nil
}

func asItem(member httpsfv.Member) quotas.Item {
	item, _ := member.(httpsfv.Item)
	return quotas.Item{Value: item.Value, Param: item.Params.Get}
}

// The method other returns the limit of requests for which the quota has no limit.
func (l *lookup) other() engine.Policy {
	if l.of.Unknown == rulefile.UnknownRefuse {
		return engine.Blocked()
	}
	return l.own
}

// The method instead returns the limit of requests for which the quota has an invalid limit.
func (l *lookup) instead() engine.Policy {
	if l.field != nil {
		return l.other()
	}
	return l.own
}

// The method under returns the limit that applies to a request, even if the quota's limit for the request is invalid.
func (l *lookup) under(request *http.Request) engine.Policy {
	p, err := l.policy(request)
	if err != nil {
		return l.instead()
	}
	return p
}

// quota returns the function that finds the limit of a request. It is nil if the limiter itself has all limits.
func (r *Rule) quota() func(*http.Request) (engine.Policy, error) {
	switch {
	case r.lookup != nil:
		return r.lookup.policy
	case r.ByQuota():
		return func(request *http.Request) (engine.Policy, error) { return r.PolicyIn(r.tierOf(request)), nil }
	}
	return nil
}

// Quotas returns the table of limits from a file, or nil.
func (r *Rule) Quotas() *quotas.Table {
	if r.lookup == nil || r.lookup.table == nil {
		return nil
	}
	return r.lookup.table.Table()
}
