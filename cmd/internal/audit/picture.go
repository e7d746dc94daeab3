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
func picture(log []fit.Request, result fit.Result) string {
	if len(log) == 0 || result.Limit.Per == 0 {
		return ""
	}
	begin, end := log[0].Sent, log[0].Done
	for _, r := range log {
		begin, end = min(begin, r.Sent), max(end, r.Done)
	}
	admitted, model, refused := countByColumn(log, result, begin, end)
	return fmt.Sprintf("admitted  %s\nmodel     %s\nrefused   %s\n          0%*s\n", bars(admitted), bars(model), bars(refused),
		columns-1, (end - begin).Round(time.Second))
}

// countByColumn counts the requests for each column of a picture. For the counts in model, the limit that was found
// decides all requests again, in order.
func countByColumn(log []fit.Request, result fit.Result, begin, end time.Duration) (admitted, model, refused [columns]int) {
	c, err := check.New(result.Limit.Limit, result.Limit.Kind)
	if err != nil {
		return admitted, model, refused
	}
	clock := result.Limit.Clock()
	order, decidedAt := inOrder(log)
	for _, i := range order {
		r, clockTime := log[i], clock(log[i].Key, decidedAt[i])
		column := int(int64(r.Sent-begin) * columns / int64(end-begin+1))
		isAdmitted := c.Until(r.Key, clockTime, 1) <= result.Tolerance
		if isAdmitted {
			model[column]++
		}
		if r.Allowed {
			admitted[column]++
		} else {
			refused[column]++
		}
		c.Add(check.Event{At: clockTime, Key: r.Key, N: 1, Allowed: isAdmitted || result.Limit.Refusals})
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
