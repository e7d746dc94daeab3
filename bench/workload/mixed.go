package workload

import (
	"cmp"
	"slices"
)

// The mixed row has clients (visitors) that ask for more than their limit. However fast the subject is, half of a
// visitor's requests are admitted. Visitors come at different times, so admissions and refusals alternate at random.

const (
	visitors = 50_000
	asked    = 16 // requests of each visitor
	stay     = 0.25
)

var mixed = Row{Name: "mixed", Title: "mixed: 50,000 clients, half of their requests refused", Keys: visitors,
	Draw: Mixed, Requests: visitors * asked, Capacity: 2 * visitors, Shown: true}

// mixed returns the requests of a pass. Its visitors occur in no other pass.
func (r *Row) mixed(pass int) *Stream {
	type request struct {
		at  float64
		who uint32
	}
	dice := random(uint64(pass))
	all := make([]request, 0, r.Requests)
	for who := range r.Requests / asked {
		comes := dice.Float64()
		for range asked {
			all = append(all, request{comes + stay*dice.Float64(), uint32(who)})
		}
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	requests, first := newStream(r.Requests), r.Keys+pass*r.Requests/asked
	for _, q := range all {
		requests.add(uint64(first) + uint64(q.who))
	}
	return requests
}
