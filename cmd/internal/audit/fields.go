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
	// Wrong is the number of wrong values, and What describes the last of them.
	Wrong int    `json:"wrong"`
	What  string `json:"what,omitempty"`
}

// fieldNames has the header fields that are checked, and the meaning of each.
var fieldNames = []struct{ name, says string }{
	{"Retry-After", "wait"}, {"RateLimit", "draft"}, {"RateLimit-Limit", "limit"}, {"RateLimit-Remaining", "left"},
	{"RateLimit-Reset", "reset"}, {"X-RateLimit-Limit", "limit"}, {"X-RateLimit-Remaining", "left"}, {"X-RateLimit-Reset", "reset"},
}

// truth compares the fields of the answers with the limit.
func truth(log []Seen, found fit.Result) (all []Field) {
	order, decided := inOrder(requestsOf(log))
	held := heldBefore(log, order, decided, 2*fillsIn(found.Limit))
	for _, name := range fieldNames {
		f, by := Field{Name: name.name}, found.Limit.Clock()
		c, err := check.New(found.Limit.Limit, found.Limit.Kind)
		if err != nil {
			return nil
		}
		for n, i := range order {
			s, at := log[i], by("", decided[i])
			c.Add(check.Event{At: at, N: 1, Allowed: s.Allowed || found.Limit.Refusals})
			text := s.Header.Get(name.name)
			// If two requests were in progress at the same time, it is unknown which was decided first.
			alone := (n == 0 || log[order[n-1]].Done.Before(s.Sent)) && (n+1 == len(order) || s.Done.Before(log[order[n+1]].Sent))
			if text == "" || !alone || found.Limit.Queued > 0 {
				continue
			}
			if f.Example == "" || !s.Allowed {
				f.Example = text
			}
			f.Answers++
			if what := untrue(name.says, text, s, at, found.Tolerance+held[n], c, found); what != "" {
				f.Wrong++
				f.What = what
			}
		}
		if f.Wrong*10 <= f.Answers { // a few claims may look wrong because the times are inexact
			f.Wrong, f.What = 0, ""
		}
		if f.Answers > 0 {
			all = append(all, f)
		}
	}
	return all
}

// heldBefore returns, for each request, by how much tokens may come back later than expected. A request may have been
// decided later than it was sent, by up to its answer time. If it was admitted, its tokens come back later by the same
// time. So the result is the longest answer time among the request and the admitted requests before it that still
// count.
func heldBefore(log []Seen, order []int, decided []time.Duration, counts time.Duration) []time.Duration {
	held := make([]time.Duration, len(order))
	took := func(i int) time.Duration { return log[i].Done.Sub(log[i].Sent) }
	for n, i := range order {
		held[n] = took(i)
		for _, before := range slices.Backward(order[:n]) {
			if decided[i]-decided[before] > counts {
				break
			}
			if log[before].Allowed {
				held[n] = max(held[n], took(before))
			}
		}
	}
	return held
}

// inOrder returns the indexes of a log's requests in the order of their decisions, and the times of the decisions. Both
// are as package fit assumes them.
func inOrder(log []fit.Request) (order []int, at []time.Duration) {
	base := time.Hour
	for _, r := range log {
		base = min(base, r.Done-r.Sent)
	}
	for i, r := range log {
		if order = append(order, i); r.Allowed {
			at = append(at, r.Sent+base/2)
		} else {
			at = append(at, r.Done-base/2)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	return order, at
}

// untrue returns what is wrong with the text of a field, or "". The times may be wrong by up to slack.
func untrue(says, text string, s Seen, at, slack time.Duration, c *check.Checker, found fit.Result) string {
	whole := time.Duration(0) // by this much, a time of day in whole seconds may be too early
	if !isSeconds(text) {
		whole = time.Second
	}
	switch says {
	case "draft":
		left, reset := parameter(text, "r"), parameter(text, "t")
		if left != "" {
			return untrue("left", left, s, at, slack, c, found)
		}
		return untrue("reset", reset, s, at, slack, c, found)
	case "limit":
		if n, err := strconv.ParseUint(first(text), 10, 64); err == nil && n != found.Limit.Capacity(found.Limit.Kind) && n != found.Limit.Tokens {
			return "says " + first(text) + ", and the limit is " + strconv.FormatUint(found.Limit.Capacity(found.Limit.Kind), 10)
		}
	case "left":
		n, err := strconv.ParseInt(first(text), 10, 64)
		if err != nil {
			return "is no number: " + text
		}
		if n > 1 && c.Until("", at+slack, uint64(n-1)) > 0 { // a difference of one may come from inexact times
			return "says " + first(text) + ", but there were fewer"
		}
		if more := uint64(max(n, 0)) + 2; more <= found.Limit.Capacity(found.Limit.Kind) && c.Until("", at-slack, more) == 0 {
			return "says " + first(text) + ", but there were more"
		}
	case "wait":
		wait, ok := seconds(text, s.Done)
		real := c.Until("", at, 1)
		switch {
		case s.Allowed || real == check.Never || real == 0:
		case !ok:
			return "is no time: " + text
		case wait+slack+whole < real:
			return "says " + text + ", and it took " + real.Round(time.Millisecond).String()
		case wait > real+time.Second+slack:
			return "says " + text + ", and " + real.Round(time.Millisecond).String() + " would do"
		}
	case "reset":
		wait, ok := seconds(text, s.Done)
		full := c.Until("", at, found.Limit.Capacity(found.Limit.Kind))
		one := c.Until("", at, 1)
		switch {
		case text == "":
		case !ok:
			return "is no time: " + text
		case wait+slack+whole < one || wait > full+time.Second+slack:
			return "says " + text + ", and a key has something in " + one.Round(time.Millisecond).String() + " and all in " +
				full.Round(time.Millisecond).String()
		}
	}
	return ""
}

// The function first returns the first number of a field such as "10, 10;w=60".
func first(text string) string {
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
	n, err := strconv.ParseFloat(first(text), 64)
	return err == nil && n <= 1e9
}

// seconds parses a time to wait. It is a number of seconds or an HTTP date. A number that is too large for a wait is a
// time in seconds since 1970.
func seconds(text string, now time.Time) (time.Duration, bool) {
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now), true
	}
	text = first(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < 1e12 {
		if n > 1e9 {
			return time.Unix(int64(n), 0).Sub(now), true
		}
		return time.Duration(n * float64(time.Second)), true
	}
	return 0, false
}
