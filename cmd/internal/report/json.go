package report

import (
	"io"

	"github.com/weir-go/weir/cmd/internal/replay"
	"github.com/weir-go/weir/cmd/internal/suggest"
)

// jsonCurve fixes names and order of the fields of a suggestion.
type jsonCurve struct {
	Percent  float64     `json:"percent"`
	Of       string      `json:"of"` // what is refused: "requests" or "keys"
	Requests uint64      `json:"requests"`
	Keys     uint64      `json:"keys"`
	Reason   string      `json:"reason"`
	Best     *jsonPoint  `json:"best"` // null if there is none
	Points   []jsonPoint `json:"points"`
}

type jsonPoint struct {
	Rate          string  `json:"rate"`
	Burst         uint64  `json:"burst,omitempty"`
	WindowSeconds float64 `json:"window_seconds,omitempty"`
	Policy        string  `json:"policy"`
	Refused       uint64  `json:"refused"`
}

// WriteJSON writes the report, with the curves, as one line of JSON.
func WriteJSON(w io.Writer, r *replay.RulesReport, curves []*suggest.Curve) error {
	all := make([]any, len(curves))
	for i, c := range curves {
		if c != nil {
			all[i] = curveJSON(c)
		}
	}
	return r.WriteJSON(w, all)
}

func curveJSON(c *suggest.Curve) jsonCurve {
	out := jsonCurve{c.Percent, c.What(), c.Requests, c.Keys, c.Reason, nil, make([]jsonPoint, len(c.Points))}
	for i, p := range c.Points {
		out.Points[i] = jsonPoint{p.Rate.String(), p.Burst, p.Window.Seconds(), p.Policy.String(), p.Refused}
	}
	if c.Best >= 0 {
		out.Best = &out.Points[c.Best]
	}
	return out
}
