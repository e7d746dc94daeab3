package replay

import (
	"encoding/json"
	"io"
)

// jsonReport has the fields that WriteJSON writes. Their names and their order must not change.
type jsonReport struct {
	Policy   string `json:"policy"`
	Format   string `json:"format"`
	Requests uint64 `json:"requests"`
	Skipped  uint64 `json:"skipped"`
	jsonOrder
	Keys        uint64    `json:"keys"`
	Allowed     uint64    `json:"allowed"`
	Refused     uint64    `json:"refused"`
	AsLogged    uint64    `json:"refused_as_logged"`
	RefusedKeys []jsonKey `json:"refused_keys"`
}

// jsonOrder has three numbers: the requests out of order, the longest delay of such a request, and the skipped lines
// whose date is far from the dates around them.
type jsonOrder struct {
	Late     uint64  `json:"out_of_order"`
	MostLate float64 `json:"out_of_order_seconds"`
	Astray   uint64  `json:"far_dates"`
}

func (l *Log) order() jsonOrder { return jsonOrder{l.Late, l.MostLate.Seconds(), l.Astray} }

type jsonKey struct {
	Key      string `json:"key"`
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"`
}

// WriteJSON writes the report as one line of JSON for other programs. It has all refused keys, in the order of the
// report. An empty list is [], not null.
func (r *Report) WriteJSON(w io.Writer) error {
	out := jsonReport{
		r.Policy.String(), r.Format, r.Requests, r.Skipped, r.order(), r.Keys, r.Allowed, r.Refused, r.AsLogged,
		jsonKeys(r.RefusedKeys),
	}
	return json.NewEncoder(w).Encode(out)
}

func jsonKeys(keys []Key) []jsonKey {
	list := make([]jsonKey, len(keys))
	for i, k := range keys {
		list[i] = jsonKey{k.Name, k.Requests, k.Refused}
	}
	return list
}

type jsonComparison struct {
	Format   string `json:"format"`
	Requests uint64 `json:"requests"`
	Skipped  uint64 `json:"skipped"`
	jsonOrder
	Keys          uint64        `json:"keys"`
	Limit         uint64        `json:"limit"`
	WindowSeconds float64       `json:"window_seconds"`
	Policies      []jsonOutcome `json:"policies"`
	LeftOut       []jsonLeftOut `json:"left_out"`
}

type jsonLeftOut struct {
	Policy string `json:"policy"`
	Reason string `json:"reason"`
}

type jsonOutcome struct {
	Policy      string  `json:"policy"`
	Allowed     uint64  `json:"allowed"`
	Refused     uint64  `json:"refused"`
	AsLogged    uint64  `json:"refused_as_logged"`
	KeysRefused int     `json:"keys_refused"`
	WorstExcess uint64  `json:"worst_excess"`
	BytesPerKey float64 `json:"bytes_per_key"`
}

// WriteJSON writes the comparison as one line of JSON for other programs. If no policies were left out, their list is
// [], not null.
func (c *Comparison) WriteJSON(w io.Writer) error {
	out := jsonComparison{
		c.Format, c.Requests, c.Skipped, c.order(), c.Keys, c.Limit, c.Window.Seconds(),
		make([]jsonOutcome, len(c.Outcomes)), make([]jsonLeftOut, len(c.LeftOut)),
	}
	for i, l := range c.LeftOut {
		out.LeftOut[i] = jsonLeftOut{l.Policy.String(), l.Reason.Error()}
	}
	for i, o := range c.Outcomes {
		out.Policies[i] = jsonOutcome{o.Policy.String(), o.Allowed, o.Refused, o.AsLogged, len(o.RefusedKeys), o.WorstExcess,
			o.BytesPerKey}
	}
	return json.NewEncoder(w).Encode(out)
}
