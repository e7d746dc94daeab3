package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/limits/quotas"
)

// A lookup finds the limit of a request's key in the table of a quota.
type lookup struct {
	of    *rulefile.Quota
	by    httplimit.KeyFunc
	own   engine.Policy
	table *quotas.Table
}

// newLookup reads the file of the rule's quota. The error has the line of what is wrong there.
func (r *Rule) newLookup(client Client) (*lookup, error) {
	q := r.Quota
	by, err := partKey(q.By, client.Key, &r.Match)
	if err != nil {
		return nil, err
	}
	numbers, err := q.Numbers()
	if err != nil {
		return nil, err
	}
	defer numbers.Close()
	in := quotas.Reader{Plans: map[string]engine.Policy{}, Policy: numbers.Policy, Key: func(text string) (string, error) {
		request, source := blank(), meant(q.By, text)
		if _, err := netip.ParseAddr(text); source.Kind == rulefile.SourceIP && err != nil {
			return "", errors.New("a key that is no address, and the limits are by ip")
		}
		write(request, source, text)
		key, ok := by.Text(request)
		if !ok || !carries(request, source, text) || strings.HasPrefix(key, "number:") { // which no request alone has
			return "", fmt.Errorf("a key that no request can have as its %s", q.By)
		}
		return key, nil
	}}
	for _, p := range q.Plans {
		in.Plans[p.Name] = p.Policy
	}
	l := &lookup{of: q, by: by, own: r.PolicyIn(0)}
	if l.table, err = in.File(q.File); err != nil {
		return nil, fmt.Errorf("%s: %w", q.File, unwrapped(err))
	}
	return l, nil
}

// unwrapped is an error without the name of the file, if it is one of the system's.
func unwrapped(err error) error {
	if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
		return bad.Err
	}
	return err
}

// policy returns the limit that a request is under.
func (l *lookup) policy(request *http.Request) engine.Policy {
	if key, ok := l.by.Text(request); ok {
		if p, ok := l.table.Of(key); ok {
			return p
		}
	}
	if l.of.Unknown == rulefile.UnknownRefuse {
		return engine.Blocked()
	}
	return l.own
}

// quota returns what says the limit of a request, where its limiter does not know it; nil where it does.
func (r *Rule) quota() func(*http.Request) engine.Policy {
	switch {
	case r.lookup != nil:
		return r.lookup.policy
	case r.ByQuota():
		return func(request *http.Request) engine.Policy { return r.PolicyIn(r.tierOf(request)) }
	}
	return nil
}

// Quotas returns the table of limits from a file; nil if there is none.
func (r *Rule) Quotas() *quotas.Table {
	if r.lookup == nil {
		return nil
	}
	return r.lookup.table
}
