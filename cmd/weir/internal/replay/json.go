package replay

import (
	"encoding/json"
	"io"
)

// jsonReport fixes names and order of the fields that WriteJSON promises.
type jsonReport struct {
	Requests    uint64    `json:"requests"`
	Skipped     uint64    `json:"skipped"`
	Keys        uint64    `json:"keys"`
	Allowed     uint64    `json:"allowed"`
	Refused     uint64    `json:"refused"`
	RefusedKeys []jsonKey `json:"refused_keys"`
}

type jsonKey struct {
	Key      string `json:"key"`
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"`
}

// WriteJSON writes the report as one line of JSON for other programs, with all
// refused keys in the report's order; the list is [], never null, if there are
// none.
func (r *Report) WriteJSON(w io.Writer) error {
	out := jsonReport{r.Requests, r.Skipped, r.Keys, r.Allowed, r.Refused, make([]jsonKey, len(r.RefusedKeys))}
	for i, k := range r.RefusedKeys {
		out.RefusedKeys[i] = jsonKey{k.Name, k.Requests, k.Refused}
	}
	return json.NewEncoder(w).Encode(out)
}
