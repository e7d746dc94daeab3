package main

import (
	"bytes"
	"fmt"
	"time"
)

// The picture's measures, in units of its view box.
const (
	width, height = 720, 470
	from          = 4 * time.Second // of the time axis; it ends at end
	left, right   = 16, 704
	zero          = 320 // the height of no request in the last window
	unit          = 10  // the height of one
	top           = zero - 21*unit - 6
	admittedRow   = 338
	refusedRow    = 388
	bottom        = 418
)

// x returns where an instant is, to a tenth of a unit.
func x(at time.Duration) string {
	at = max(at, from)
	tenths := left*10 + int64(at-from)*(right-left)*10/int64(end-from)
	return fmt.Sprintf("%d.%d", tenths/10, tenths%10)
}

const style = `
  .back{fill:#fff} text{fill:#1f2328;font:26px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Helvetica,Arial,sans-serif}
  .title{font-size:30px;font-weight:700} .number{font-weight:700}
  .quiet{fill:#59636e} .edge{stroke:#8c959f;stroke-width:1.5} .axis{stroke:#59636e;stroke-width:2}
  .limit{stroke:#1f2328;stroke-width:3;stroke-dasharray:12 7}
  .area{fill:#0969da;opacity:.14} .curve{fill:none;stroke:#0969da;stroke-width:3.5;stroke-linejoin:round}
  .admitted{stroke:#0969da;stroke-width:1.9} .refused{stroke:#bc4c00;stroke-width:1.6}
  .worst{stroke:#1f2328;stroke-width:2.5;fill:none} .dot{fill:#1f2328;stroke:#fff;stroke-width:2.5}
  @media (prefers-color-scheme:dark){
   .back{fill:#0d1117} text{fill:#f0f6fc} .quiet{fill:#9198a1} .edge{stroke:#656c76} .axis{stroke:#9198a1}
   .limit,.worst{stroke:#f0f6fc} .area{fill:#4493f8;opacity:.22} .curve,.admitted{stroke:#4493f8} .refused{stroke:#f0883e}
   .dot{fill:#f0f6fc;stroke:#0d1117}
  }
`

// draw returns the picture of a figure as an SVG document.
func (f figure) draw() ([]byte, error) {
	answers, err := play(f.policy, load())
	if err != nil {
		return nil, err
	}
	steps := curve(answers)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title desc">`+"\n", width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s: %s</title>\n<desc id=\"desc\">%s</desc>\n<style>%s</style>\n", f.title, f.numbers, f.describe(answers, steps), style)
	fmt.Fprintf(&b, `<rect class="back" width="%d" height="%d" rx="10"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="40"><tspan class="title">%s</tspan> <tspan class="quiet" dx="6">%s</tspan></text>`+"\n", left, f.title, f.numbers)
	f.drawEdges(&b)
	drawCurve(&b, steps)
	drawTicks(&b, answers)
	drawWorst(&b, worst(steps))
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// describe says in words what the picture shows.
func (f figure) describe(answers []answer, steps []step) string {
	admitted := 0
	for _, a := range answers {
		if a.admitted {
			admitted++
		}
	}
	high := worst(steps)
	return fmt.Sprintf("A client that was silent asks %d times in %.1f seconds around an edge at second %d, and three times a second from then on. "+
		"The limit is %d in %d seconds. Of %d requests %d are admitted. The most in any %d seconds is %d, reached at second %.2f.",
		2*limit, (2 * rush).Seconds(), edge/time.Second, limit, window/time.Second, len(answers), admitted, window/time.Second, high.count, high.at.Seconds())
}

// drawEdges draws the axis, and thin lines where a window ends or a refill comes.
func (f figure) drawEdges(b *bytes.Buffer) {
	for at := edge; at < end; at += f.edges { // the words stand before that
		fmt.Fprintf(b, `<line class="edge" x1="%[1]s" x2="%[1]s" y1="%d" y2="%d"/>`+"\n", x(at), top, bottom)
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" x2="%d" y1="%[3]d" y2="%[3]d"/>`+"\n", left, right, zero)
	for at := from - from%(5*time.Second) + 5*time.Second; at < end; at += 5 * time.Second {
		fmt.Fprintf(b, `<text class="quiet" x="%s" y="%d" text-anchor="middle">%d s</text>`+"\n", x(at), bottom+30, at/time.Second)
	}
}

// drawCurve draws how many were admitted in the last window, and the limit.
func drawCurve(b *bytes.Buffer, steps []step) {
	var path bytes.Buffer
	fmt.Fprintf(&path, "M%s %d", x(from), zero)
	for _, s := range steps[1:] {
		fmt.Fprintf(&path, "H%sV%d", x(s.at), zero-s.count*unit)
	}
	fmt.Fprintf(&path, "H%s", x(end))
	fmt.Fprintf(b, `<path class="area" d="%sV%dZ"/>`+"\n", path.Bytes(), zero)
	fmt.Fprintf(b, `<path class="curve" d="%s"/>`+"\n", path.Bytes())
	fmt.Fprintf(b, `<line class="limit" x1="%d" x2="%d" y1="%[3]d" y2="%[3]d"/>`+"\n", left, right, zero-limit*unit)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">limit %d</text>`+"\n", right, zero-limit*unit-12, limit)
	fmt.Fprintf(b, `<text class="quiet" x="%d" y="%d">admitted in</text><text class="quiet" x="%[1]d" y="%[3]d">the last %d s</text>`+"\n", left, zero-42, zero-12, window/time.Second)
}

// drawTicks draws the requests: tall and upstairs if admitted, short and downstairs if refused.
func drawTicks(b *bytes.Buffer, answers []answer) {
	var admitted, refused bytes.Buffer
	for _, a := range answers {
		if a.admitted {
			fmt.Fprintf(&admitted, "M%s %dv36", x(a.at), admittedRow)
		} else {
			fmt.Fprintf(&refused, "M%s %dv16", x(a.at), refusedRow)
		}
	}
	fmt.Fprintf(b, `<path class="admitted" d="%s"/><path class="refused" d="%s"/>`+"\n", admitted.Bytes(), refused.Bytes())
	fmt.Fprintf(b, `<text x="%d" y="%d">admitted</text><text x="%[1]d" y="%[3]d">refused</text>`+"\n", left, admittedRow+28, refusedRow+18)
}

// drawWorst marks the moment with the most in the last window, and that window.
func drawWorst(b *bytes.Buffer, high step) {
	y := zero - high.count*unit
	begin := max(high.at-window, from)
	fmt.Fprintf(b, `<path class="worst" d="M%s %dH%s"/>`+"\n", x(begin), y-14, x(high.at))
	if begin > from {
		fmt.Fprintf(b, `<path class="worst" d="M%s %dv12"/>`+"\n", x(begin), y-20)
	}
	fmt.Fprintf(b, `<path class="worst" d="M%s %dv12"/><circle class="dot" cx="%[1]s" cy="%[3]d" r="7"/>`+"\n", x(high.at), y-20, y)
	fmt.Fprintf(b, `<text class="number" x="%s" y="%d" text-anchor="middle">%d in %d s</text>`+"\n", x(begin+(high.at-begin)/2), y-26, high.count, window/time.Second)
}
