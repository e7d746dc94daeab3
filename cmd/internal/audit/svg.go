package audit

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/weir-go/weir/internal/chart"
	"github.com/weir-go/weir/limitertest/check"
)

type drawing struct {
	end               time.Duration
	capacity          uint64
	tokensLeft        []chart.Point // tokens left under the limit that was found
	admitted, refused []float64     // times of requests that the server decided, in seconds
}

// steps is the number of instants for which the remaining tokens are drawn, in addition to the instants of requests.
const steps = 1500

// WriteSVG draws the log of one key. At the top are the tokens left under the limit that was found. Below them is each
// request with the server's decision. If the log has many keys, it draws the first. If the limit explains the log,
// requests are refused when nothing is left. WriteSVG returns an error if no limit was found.
func (r *Report) WriteSVG(w io.Writer) error {
	if !r.result.Returned {
		return errors.New("there is no picture: no limit was found")
	}
	d, err := r.drawing()
	if err != nil {
		return err
	}
	capacity := float64(d.capacity)
	p := &chart.Plot{X: chart.Linear(0, d.end.Seconds()), Y: chart.Linear(-0.4*capacity, 1.08*capacity), Height: 260}
	for _, at := range []float64{0, capacity} {
		p.Y.Ticks = append(p.Y.Ticks, chart.Tick{At: at, Text: chart.Short(at)})
	}
	for i := range 7 {
		at := d.end.Seconds() * float64(i) / 6
		p.X.Ticks = append(p.X.Ticks, chart.Tick{At: at, Text: fmt.Sprintf("%.0f s", at), Minor: i%2 > 0})
	}
	p.Line(chart.Line{Points: d.tokensLeft, Colour: chart.Grey, Width: 1.2, Filled: true})
	p.Strokes(chart.Blue, 1.2, d.admitted, -0.2*capacity, -0.05*capacity)
	p.Strokes(chart.Orange, 1.2, d.refused, -0.4*capacity, -0.25*capacity)
	title := fmt.Sprintf("%s: %d in %s, %d at once", r.Kind, r.Tokens, r.Per, r.AtOnce)
	label := fmt.Sprintf("What a key has left by the limit that was found, over %.0f seconds, with the %d requests that the server admitted "+
		"and the %d that it refused. The limit explains %d of %d decisions.", d.end.Seconds(), len(d.admitted), len(d.refused),
		r.decisions-r.Misfits, r.decisions)
	return chart.Picture{
		Title: title, Subtitle: fmt.Sprintf("%s: explains %d of %d decisions", r.Source, r.decisions-r.Misfits, r.decisions), Width: 900,
		Chart: p.Chart(label), Legend: []chart.Key{{Colour: chart.Grey, Text: "left, by the limit that was found"},
			{Colour: chart.Blue, Text: "admitted by the server"}, {Colour: chart.Orange, Text: "refused by the server"}},
	}.Write(w)
}

// drawing replays the requests of the first key under the limit that was found.
func (r *Report) drawing() (d drawing, err error) {
	l := r.result.Limit
	c, err := check.New(l.Limit, l.Kind)
	if err != nil {
		return d, err
	}
	order, decidedAt := inOrder(r.log)
	begin, key, clock := decidedAt[order[0]], r.log[order[0]].Key, l.Clock()
	d.end = max(decidedAt[order[len(order)-1]]-begin, time.Second)
	d.capacity = l.Capacity(l.Kind)
	addPoint := func(at, clockTime time.Duration) {
		n := sort.Search(int(d.capacity), func(n int) bool { return c.Until(key, clockTime, uint64(n)+1) > 0 })
		d.tokensLeft = append(d.tokensLeft, chart.Point{X: (at - begin).Seconds(), Y: float64(n)})
	}
	last := begin
	for _, i := range order {
		q, at := r.log[i], decidedAt[i]
		if q.Key != key {
			continue
		}
		clockTime := clock(key, at)
		for ; last < at; last += d.end / steps {
			addPoint(last, clockTime-(at-last))
		}
		addPoint(at, clockTime)
		if q.Allowed {
			d.admitted = append(d.admitted, (at - begin).Seconds())
		} else {
			d.refused = append(d.refused, (at - begin).Seconds())
		}
		if q.Allowed || l.Refusals {
			c.Add(check.Event{At: clockTime, Key: key, N: 1, Allowed: true})
			addPoint(at, clockTime)
		}
	}
	return d, nil
}
