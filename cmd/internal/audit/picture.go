package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/limitertest/check"
)

const columns = 72

var heights = []rune(" ▁▂▃▄▅▆▇█")

// picture draws three lines over time: the admitted requests, the requests that the limit would have admitted, and the
// refused requests.
func picture(log []fit.Request, found fit.Result) string {
	if len(log) == 0 || found.Limit.Per == 0 {
		return ""
	}
	begin, end := log[0].Sent, log[0].Done
	for _, r := range log {
		begin, end = min(begin, r.Sent), max(end, r.Done)
	}
	admitted, model, refused := overTime(log, found, begin, end)
	return fmt.Sprintf("admitted  %s\nmodel     %s\nrefused   %s\n          0%*s\n", bars(admitted), bars(model), bars(refused),
		columns-1, (end - begin).Round(time.Second))
}

// overTime counts the requests for each column of a picture. For the counts in model, the limit that was found decides
// all requests again, in order.
func overTime(log []fit.Request, found fit.Result, begin, end time.Duration) (admitted, model, refused [columns]int) {
	c, err := check.New(found.Limit.Limit, found.Limit.Kind)
	if err != nil {
		return admitted, model, refused
	}
	by := found.Limit.Clock()
	order, decided := inOrder(log)
	for _, i := range order {
		r, on := log[i], by(log[i].Key, decided[i])
		at := int(int64(r.Sent-begin) * columns / int64(end-begin+1))
		wouldBe := c.Until(r.Key, on, 1) <= found.Tolerance
		if wouldBe {
			model[at]++
		}
		if r.Allowed {
			admitted[at]++
		} else {
			refused[at]++
		}
		c.Add(check.Event{At: on, Key: r.Key, N: 1, Allowed: wouldBe || found.Limit.Refusals})
	}
	return admitted, model, refused
}

func bars(counts [columns]int) string {
	var b strings.Builder
	for _, n := range counts {
		height := 0
		for ; n > 0 && height < len(heights)-1; n /= 2 {
			height++
		}
		b.WriteRune(heights[height])
	}
	return b.String()
}
