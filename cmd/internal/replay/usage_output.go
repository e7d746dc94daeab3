package replay

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/weir-go/weir/cmd/internal/number"
)

// Notes explains the figures.
func (r *UsageReport) Notes() []string {
	var notes []string
	if r.Field == "" {
		notes = append(notes, "The log has no field for a key: all requests are one key (--by).")
	}
	if r.Summed > 0 {
		notes = append(notes, fmt.Sprintf("%s requests are known only as sums: each counts as the mean, evenly "+
			"spread over the time\nof its sum. Real ones come in bursts, and a limit refuses more of them.", number.Comma(r.Summed)))
	}
	if r.Untimed > 0 {
		notes = append(notes, fmt.Sprintf("Of %s requests it is not known how long they took. Their holds are settled at once, and\n"+
			"refuse no others: a limit refuses more, above all where estimates are high.", number.Comma(r.Untimed)))
	}
	for i := range r.Estimates {
		if r.Estimates[i].Estimate.Learned {
			notes = append(notes, "learned: the first 20 requests for a model hold what they cost: the worst case is in no log.")
		}
	}
	return notes
}

// WriteTable writes the report for people, with up to top refused keys for each estimate.
func (r *UsageReport) WriteTable(w io.Writer, top int) error {
	t := newTable(&r.Log)
	t.width = max(t.width, len(number.Comma(r.Tokens)))
	keys := row{"keys", r.Keys, ""}
	if r.Field != "" {
		keys.note = "by " + printable(r.Field)
	}
	t.totals(row{"requests", r.Requests, ""}, row{"tokens", r.Tokens, ""}, keys)
	t.reasons()
	g := t.grid("estimate", t.number("allowed"), t.number("refused"), "   share", t.number("tokens allowed"), t.number("refused"),
		"beyond holds", "held too much", "keys refused")
	for i := range r.Estimates {
		e := &r.Estimates[i]
		g.line(e.Estimate.String(), number.Comma(e.Allowed), number.Comma(e.Refused), share(e.Refused, r.Requests),
			number.Comma(e.Admitted), number.Comma(e.Rejected), number.Comma(e.Beyond), number.Comma(e.Unused),
			number.Comma(uint64(len(e.RefusedKeys))))
	}
	g.flush()
	for i := range r.Estimates {
		if e := &r.Estimates[i]; e.Lost > 0 {
			fmt.Fprintf(&t.out, "\n%v: %s tokens are not charged, because a key already owes the maximum\n", e.Estimate, number.Comma(e.Lost))
		}
	}
	for i := range r.Estimates {
		e := &r.Estimates[i]
		if keys := e.RefusedKeys[:min(top, len(e.RefusedKeys))]; len(keys) > 0 {
			t.keys(fmt.Sprintf("%v: most refused", e.Estimate), keys)
		}
	}
	for i, note := range r.Notes() {
		if i == 0 {
			fmt.Fprintln(&t.out)
		}
		fmt.Fprintln(&t.out, note)
	}
	return t.write(w, "")
}

// jsonUsage has the fields that WriteJSON writes for a usage log. Their names and their order must not change.
type jsonUsage struct {
	Policy   string `json:"policy"`
	Format   string `json:"format"`
	Requests uint64 `json:"requests"`
	Skipped  uint64 `json:"skipped"`
	jsonOrder
	Tokens     uint64         `json:"tokens"`
	KeyField   string         `json:"key_field"`
	Keys       uint64         `json:"keys"`
	Summed     uint64         `json:"requests_of_sums"`
	Untimed    uint64         `json:"requests_without_duration"`
	Estimates  []jsonEstimate `json:"estimates"`
	Suggestion any            `json:"suggestion,omitempty"`
}

type jsonEstimate struct {
	Estimate      string    `json:"estimate"`
	Allowed       uint64    `json:"allowed"`
	Refused       uint64    `json:"refused"`
	TokensAllowed uint64    `json:"tokens_allowed"`
	TokensRefused uint64    `json:"tokens_refused"`
	Beyond        uint64    `json:"tokens_beyond_holds"`
	Unused        uint64    `json:"tokens_held_too_much"`
	Lost          uint64    `json:"tokens_lost"`
	RefusedKeys   []jsonKey `json:"refused_keys"`
}

// WriteJSON writes the report as one line of JSON for other programs. An empty list is [], not null. The parameter
// suggestion is written unchanged, unless it is nil.
func (r *UsageReport) WriteJSON(w io.Writer, suggestion any) error {
	out := jsonUsage{
		r.Policy.String(), r.Format, r.Requests, r.Skipped, r.order(), r.Tokens, r.Field, r.Keys, r.Summed, r.Untimed,
		make([]jsonEstimate, len(r.Estimates)), suggestion,
	}
	for i := range r.Estimates {
		e := &r.Estimates[i]
		out.Estimates[i] = jsonEstimate{
			e.Estimate.String(), e.Allowed, e.Refused, e.Admitted, e.Rejected, e.Beyond, e.Unused, e.Lost, jsonKeys(e.RefusedKeys),
		}
	}
	return json.NewEncoder(w).Encode(out)
}
