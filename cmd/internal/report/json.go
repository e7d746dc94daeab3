package report

import (
	"io"
	"time"

	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/suggest"
)

// jsonSuggestion has the fields of a suggestion. Their names and their order must not change.
type jsonSuggestion struct {
	Abusive  bool           `json:"abusive"` // false if the limits also refuse other keys
	Percent  float64        `json:"percent"` // the largest share of the key-days that is refused
	Requests uint64         `json:"requests"`
	Keys     uint64         `json:"keys"`
	KeyDays  uint64         `json:"key_days"`
	Reason   string         `json:"reason"`
	Best     *jsonPoint     `json:"best"` // null if there is no best limit
	Refused  uint64         `json:"requests_refused"`
	Periods  []jsonPoint    `json:"periods"`   // the limit for each period
	Others   []jsonPoint    `json:"trade_off"` // all limits for the period of the best one
	Affected []jsonAffected `json:"most_affected"`
}

type jsonPoint struct {
	Rate    string `json:"rate"`
	Burst   uint64 `json:"burst,omitempty"`
	Policy  string `json:"policy"`
	Refused uint64 `json:"key_days_refused"`
}

type jsonAffected struct {
	Key         string    `json:"key"`
	Requests    uint64    `json:"requests"`
	Refused     uint64    `json:"refused"`
	LongestWait float64   `json:"longest_wait_seconds"`
	First       time.Time `json:"first_refusal"`
}

// WriteJSON writes the report, with the suggestions, as one line of JSON.
func WriteJSON(w io.Writer, r *replay.RulesReport, suggestions []*suggest.Suggestion) error {
	list := make([]any, len(suggestions))
	for i, s := range suggestions {
		if s != nil {
			list[i] = suggestionJSON(s)
		}
	}
	return r.WriteJSON(w, list)
}

// WriteUsageJSON writes the report of a usage log, with the suggestion if there is one, as one line of JSON.
func WriteUsageJSON(w io.Writer, r *replay.UsageReport, s *suggest.Suggestion) error {
	if s == nil {
		return r.WriteJSON(w, nil)
	}
	return r.WriteJSON(w, suggestionJSON(s))
}

func suggestionJSON(s *suggest.Suggestion) jsonSuggestion {
	out := jsonSuggestion{Abusive: s.Abusive, Percent: s.Percent, Requests: s.Requests, Keys: s.Keys, KeyDays: s.KeyDays,
		Reason:  s.Reason,
		Refused: s.Refused, Periods: []jsonPoint{}, Others: []jsonPoint{}, Affected: []jsonAffected{}}
	for i := range s.Curves {
		out.Periods = append(out.Periods, pointJSON(s.Curves[i].Point()))
	}
	if p := s.Point(); p != nil {
		best := pointJSON(p)
		out.Best = &best
		points := s.Curves[s.Best].Points
		for i := range points {
			out.Others = append(out.Others, pointJSON(&points[i]))
		}
	}
	for _, a := range s.Affected {
		out.Affected = append(out.Affected, jsonAffected{a.Key, a.Requests, a.Refused, a.LongestWait.Seconds(), a.First})
	}
	return out
}

func pointJSON(p *suggest.Point) jsonPoint {
	return jsonPoint{p.Rate.String(), p.Burst, p.Policy.String(), p.Refused}
}
