package audit

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/limitertest/check"
)

// A Field is a header field of the answers, and how often its value was wrong.
type Field struct {
	Name    string `json:"name"`
	Example string `json:"example"`
	Answers int    `json:"answers"` // answers that have the field and whose true value is known
	// Wrong is the number of wrong values, and Mistake describes the last of them.
	Wrong   int    `json:"wrong"`
	Mistake string `json:"what,omitempty"`
}

// fieldNames has the header fields that are checked, and the meaning of each.
var fieldNames = []struct{ name, meaning string }{
	{"Retry-After", "wait"}, {"RateLimit", "draft"}, {"RateLimit-Limit", "limit"}, {"RateLimit-Remaining", "left"},
	{"RateLimit-Reset", "reset"}, {"X-RateLimit-Limit", "limit"}, {"X-RateLimit-Remaining", "left"}, {"X-RateLimit-Reset", "reset"},
}

// checkFields compares the fields of the answers with the limit.
func checkFields(log []Exchange, result fit.Result) (fields []Field) {
	order, decidedAt := inOrder(requestsOf(log))
	delays := delaysBefore(log, order, decidedAt, 2*fillTimeOf(result.Limit))
	for _, field := range fieldNames {
		f, clock := Field{Name: field.name}, result.Limit.Clock()
		c, err := check.New(result.Limit.Limit, result.Limit.Kind)
		if err != nil {
			return nil
		}
		for n, i := range order {
			s, at := log[i], clock("", decidedAt[i])
			c.Add(check.Event{At: at, N: 1, Allowed: s.Allowed || result.Limit.Refusals})
			text := s.Header.Get(field.name)
			// If two requests were in progress at the same time, it is unknown which was decided first.
			isAlone := (n == 0 || log[order[n-1]].Done.Before(s.Sent)) && (n+1 == len(order) || s.Done.Before(log[order[n+1]].Sent))
			if text == "" || !isAlone || result.Limit.Queued > 0 {
				continue
			}
			if f.Example == "" || !s.Allowed {
				f.Example = text
			}
			f.Answers++
			if mistake := mistakeIn(field.meaning, text, s, at, result.Tolerance+delays[n], c, result); mistake != "" {
				f.Wrong++
				f.Mistake = mistake
			}
		}
		if f.Wrong*10 <= f.Answers { // a few claims may look wrong because the times are inexact
			f.Wrong, f.Mistake = 0, ""
		}
		if f.Answers > 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

// delaysBefore returns, for each request, by how much tokens may come back later than expected. A request may have been
// decided later than it was sent, by up to its answer time. If it was admitted, its tokens come back later by the same
// time. So the result is the longest answer time among the request and the admitted requests before it that still
// count. The parameter lifetime is how long an admission counts.
func delaysBefore(log []Exchange, order []int, decidedAt []time.Duration, lifetime time.Duration) []time.Duration {
	delays := make([]time.Duration, len(order))
	answerTime := func(i int) time.Duration { return log[i].Done.Sub(log[i].Sent) }
	for n, i := range order {
		delays[n] = answerTime(i)
		for _, before := range slices.Backward(order[:n]) {
			if decidedAt[i]-decidedAt[before] > lifetime {
				break
			}
			if log[before].Allowed {
				delays[n] = max(delays[n], answerTime(before))
			}
		}
	}
	return delays
}

// inOrder returns the indexes of a log's requests in the order of their decisions, and the times of the decisions. Both
// are as package fit assumes them.
func inOrder(log []fit.Request) (order []int, times []time.Duration) {
	minAnswerTime := time.Hour
	for _, r := range log {
		minAnswerTime = min(minAnswerTime, r.Done-r.Sent)
	}
	for i, r := range log {
		if order = append(order, i); r.Allowed {
			times = append(times, r.Sent+minAnswerTime/2)
		} else {
			times = append(times, r.Done-minAnswerTime/2)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
	return order, times
}

// mistakeIn returns what is wrong with the text of a field, or "". The times may be wrong by up to slack.
func mistakeIn(meaning, text string, s Exchange, at, slack time.Duration, c *check.Checker, result fit.Result) string {
	rounding := time.Duration(0) // a time of day in whole seconds may be too early by this much
	if !isSeconds(text) {
		rounding = time.Second
	}
	switch meaning {
	case "draft":
		left, reset := parameter(text, "r"), parameter(text, "t")
		if left != "" {
			return mistakeIn("left", left, s, at, slack, c, result)
		}
		return mistakeIn("reset", reset, s, at, slack, c, result)
	case "limit":
		if n, err := strconv.ParseUint(firstNumber(text), 10, 64); err == nil && n != result.Limit.Capacity(result.Limit.Kind) && n != result.Limit.Tokens {
			return "says " + firstNumber(text) + ", and the limit is " + strconv.FormatUint(result.Limit.Capacity(result.Limit.Kind), 10)
		}
	case "left":
		n, err := strconv.ParseInt(firstNumber(text), 10, 64)
		if err != nil {
			return "is no number: " + text
		}
		if n > 1 && c.Until("", at+slack, uint64(n-1)) > 0 { // a difference of one may come from inexact times
			return "says " + firstNumber(text) + ", but there were fewer"
		}
		if higher := uint64(max(n, 0)) + 2; higher <= result.Limit.Capacity(result.Limit.Kind) && c.Until("", at-slack, higher) == 0 {
			return "says " + firstNumber(text) + ", but there were more"
		}
	case "wait":
		wait, ok := seconds(text, s.Done)
		actual := c.Until("", at, 1)
		switch {
		case s.Allowed || actual == check.Never || actual == 0:
		case !ok:
			return "is no time: " + text
		case wait+slack+rounding < actual:
			return "says " + text + ", and it took " + actual.Round(time.Millisecond).String()
		case wait > actual+time.Second+slack:
			return "says " + text + ", and " + actual.Round(time.Millisecond).String() + " would do"
		}
	case "reset":
		wait, ok := seconds(text, s.Done)
		untilFull := c.Until("", at, result.Limit.Capacity(result.Limit.Kind))
		untilOne := c.Until("", at, 1)
		switch {
		case text == "":
		case !ok:
			return "is no time: " + text
		case wait+slack+rounding < untilOne || wait > untilFull+time.Second+slack:
			return "says " + text + ", and a key has something in " + untilOne.Round(time.Millisecond).String() + " and all in " +
				untilFull.Round(time.Millisecond).String()
		}
	}
	return ""
}

// firstNumber returns the first number of a field such as "10, 10;w=60".
func firstNumber(text string) string {
	return strings.TrimSpace(strings.FieldsFunc(text+" ", func(r rune) bool { return r == ',' || r == ';' })[0])
}

// parameter returns a parameter of a structured field, such as r of `"default";r=5;t=10`.
func parameter(text, name string) string {
	if m := regexp.MustCompile(`(?:^|[;,\s])` + name + `=(\d+)`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// isSeconds reports whether a text is a number of seconds from now on, rather than a time.
func isSeconds(text string) bool {
	n, err := strconv.ParseFloat(firstNumber(text), 64)
	return err == nil && n <= 1e9
}

// seconds parses a time to wait. It is a number of seconds or an HTTP date. A number that is too large for a wait is a
// time in seconds since 1970.
func seconds(text string, now time.Time) (time.Duration, bool) {
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now), true
	}
	text = firstNumber(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e12 {
		if n > 1e9 {
			return time.Unix(int64(n), 0).Sub(now), true
		}
		return time.Duration(n * float64(time.Second)), true
	}
	return 0, false
}
