package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// busyClients is how many clients have their requests counted, to find proxies. They are the first clients of the
	// log. They are counted by address, whatever the limit's key is.
	busyClients = 1000
	// fewClients is how many clients may be proxies: they are suspected if together they send nearly all requests.
	fewClients = 3
	// busyShare is the share of the requests that counts as nearly all. If a log has fewer requests than minRequests,
	// no client is suspected.
	busyShare, minRequests = 0.99, 1000
)

// clientCounts has the first clients of a log, with the number of requests of each.
type clientCounts map[string]*uint64

func (b clientCounts) count(client []byte) {
	n := b[string(client)]
	if n == nil {
		if len(b) == busyClients {
			return
		}
		n = new(uint64)
		b[string(client)] = n
	}
	*n++
}

// note returns a text if a few clients sent nearly all requests, or else "".
func (b clientCounts) note(requests uint64) string {
	names := slices.SortedFunc(maps.Keys(b), func(a, c string) int {
		if d := int64(*b[c]) - int64(*b[a]); d != 0 {
			return int(min(max(d, -1), 1))
		}
		return strings.Compare(a, c)
	})
	names = names[:min(fewClients, len(names))]
	var sum uint64
	for _, name := range names {
		sum += *b[name]
	}
	if requests < minRequests || float64(sum) < busyShare*float64(requests) {
		return ""
	}
	return fmt.Sprintf("%s of the requests are of %s. If that is your proxy, its limit is one for all clients: log the address\n"+
		"that it forwards, or say --client X-Forwarded-For where the log has that header field.",
		strings.TrimSpace(share(sum, requests)), strings.Join(names, ", "))
}
