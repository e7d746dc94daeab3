package replay

import (
	"encoding/json"
	"io"
)

// jsonRules has the fields that WriteJSON writes for rules. Their names and their order must not change.
type jsonRules struct {
	Format   string `json:"format"`
	Requests uint64 `json:"requests"`
	Skipped  uint64 `json:"skipped"`
	jsonOrder
	NotHTTP  uint64     `json:"not_http"`
	Refused  uint64     `json:"refused"`
	AsLogged uint64     `json:"refused_as_logged"`
	Rules    []jsonRule `json:"rules"`
}

type jsonRule struct {
	Name            string    `json:"name"`
	Policy          string    `json:"policy"`
	Shadow          bool      `json:"shadow"`
	Judged          bool      `json:"judged"`
	Remarks         []string  `json:"remarks"`
	Matched         uint64    `json:"matched"`
	Refused         uint64    `json:"refused"`
	AsLogged        uint64    `json:"refused_as_logged"`
	RefusedByOthers uint64    `json:"refused_by_others"`
	Keys            uint64    `json:"keys"`
	RefusedKeys     []jsonKey `json:"refused_keys"`
	Suggestion      any       `json:"suggestion,omitempty"`
}

// WriteJSON writes the report as one line of JSON for other programs. An empty list is [], not null. The list
// suggestions has one entry for each rule, which is written unchanged, or it is empty.
func (r *RulesReport) WriteJSON(w io.Writer, suggestions []any) error {
	out := jsonRules{r.Format, r.Requests, r.Skipped, r.order(), r.NotHTTP, r.Refused, r.AsLogged,
		make([]jsonRule, len(r.Rules))}
	for i := range r.Rules {
		o := &r.Rules[i]
		out.Rules[i] = jsonRule{
			o.Rule.Name, o.Rule.OwnLimit(), o.Rule.Shadow, o.Blind == "", o.Remarks(),
			o.Matched, o.Refused, o.AsLogged, o.Elsewhere, o.Keys, jsonKeys(o.RefusedKeys), nil,
		}
		if i < len(suggestions) {
			out.Rules[i].Suggestion = suggestions[i]
		}
	}
	return json.NewEncoder(w).Encode(out)
}
