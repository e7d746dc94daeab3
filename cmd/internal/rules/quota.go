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
	quota      *rulefile.Quota
	key        httplimit.KeyFunc
	rulePolicy engine.Policy
	table      *quotas.Live // nil for a header, and for a hash that was not read yet

	field     *quotas.Field // reads a header; nil if the limit is not in a header
	isTrusted func(*http.Request) bool
}

// newLookup reads the file with the limits of a rule's quota. An error for a mistake has the line. If the limits are in
// a hash, [Rule.ReadHash] reads them later.
func (r *Rule) newLookup(client Client, isTrusted func(*http.Request) bool) (l *lookup, err error) {
	l = &lookup{quota: r.Quota, rulePolicy: r.PolicyIn(0), isTrusted: isTrusted}
	if r.Quota.Header != "" {
		unit := ""
		if r.Tokens != nil {
			unit = r.Tokens.Unit()
		}
		l.field = r.Quota.Field(unit)
		return l, nil
	}
	if l.key, err = partKey(r.Quota.By, client.Key, &r.Match); err != nil || r.Quota.File == "" {
		return l, err
	}
	l.table, err = quotas.Open(context.Background(), func(context.Context) (*quotas.Table, error) {
		return l.read(func(reader quotas.Reader) (*quotas.Table, error) { return reader.File(r.Quota.File) })
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Quota.File, withoutPath(err))
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
		return r.lookup.read(func(reader quotas.Reader) (*quotas.Table, error) {
			return reader.Pairs(func(yield func(key, limit string) error) error { return hash(ctx, r.Quota.Hash, yield) })
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

// read makes a reader for the keys and plans of the rule. It passes the reader to the function readTable, which returns
// the table.
func (l *lookup) read(readTable func(quotas.Reader) (*quotas.Table, error)) (*quotas.Table, error) {
	q := l.quota
	numbers, err := q.Numbers()
	if err != nil {
		return nil, err
	}
	defer numbers.Close()
	reader := quotas.Reader{Plans: map[string]engine.Policy{}, Policy: numbers.Policy, Key: func(text string) (string, error) {
		request, source := emptyRequest(), sourceFor(q.By, text)
		if _, err := netip.ParseAddr(text); source.Kind == rulefile.SourceIP && err != nil {
			return "", errors.New("a key that is not an address, and the limits are by ip")
		}
		writeSource(request, source, text)
		key, ok := l.key.Text(request)
		if !ok || !canCarry(request, source, text) || strings.HasPrefix(key, "number:") { // no request has this key
			return "", fmt.Errorf("a key that no request can have as its %s", q.By)
		}
		return key, nil
	}}
	for _, p := range q.Plans {
		reader.Plans[p.Name] = p.Policy
	}
	return readTable(reader)
}

// withoutPath removes the name of the file from an error of the system.
func withoutPath(err error) error {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// policy returns the limit of a request. An error means that the request's header is wrong.
func (l *lookup) policy(request *http.Request) (engine.Policy, error) {
	if l.field != nil {
		return l.headerPolicy(request)
	}
	if key, ok := l.key.Text(request); ok && l.table != nil {
		if p, ok := l.table.Of(key); ok {
			return p, nil
		}
	}
	return l.unknownPolicy(), nil
}

// headerPolicy returns the limit in the header of a trusted proxy.
func (l *lookup) headerPolicy(request *http.Request) (engine.Policy, error) {
	lines := request.Header[l.quota.Header]
	if len(lines) == 0 || !l.isTrusted(request) {
		return l.unknownPolicy(), nil
	}
	p, ok, err := quotas.Read(l.field, lines, httpsfv.UnmarshalList, asItem)
	switch {
	case err != nil:
		return p, fmt.Errorf("the header %s: %w", l.quota.Header, err)
	case !ok:
		return l.unknownPolicy(), nil
	}
	return p, nil
}

func asItem(member httpsfv.Member) quotas.Item {
	item, _ := member.(httpsfv.Item)
	return quotas.Item{Value: item.Value, Param: item.Params.Get}
}

// unknownPolicy returns the limit of requests for which the quota has no limit.
func (l *lookup) unknownPolicy() engine.Policy {
	if l.quota.Unknown == rulefile.UnknownRefuse {
		return engine.Blocked()
	}
	return l.rulePolicy
}

// invalidPolicy returns the limit of requests for which the quota has an invalid limit.
func (l *lookup) invalidPolicy() engine.Policy {
	if l.field != nil {
		return l.unknownPolicy()
	}
	return l.rulePolicy
}

// effectivePolicy returns the limit that applies to a request, even if the quota's limit for the request is invalid.
func (l *lookup) effectivePolicy(request *http.Request) engine.Policy {
	p, err := l.policy(request)
	if err != nil {
		return l.invalidPolicy()
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
