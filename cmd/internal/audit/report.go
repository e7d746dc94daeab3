package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
	"github.com/weir-go/weir/limitertest/check"
)

// A Report is the result of an audit.
type Report struct {
	Source   string  `json:"of"` // a URL or a log
	Requests int     `json:"requests"`
	Admitted int     `json:"admitted"`
	Seconds  float64 `json:"seconds"`
	// Stopped says why the audit ended early, or "" if it did not.
	Stopped string `json:"stopped,omitempty"`

	// Answers counts the admitted requests whose status is not 2xx, by status.
	Answers map[int]int `json:"answers,omitempty"`

	Kind       string   `json:"kind"` // "" if there is no limit, and "unknown" if nothing came back
	Tokens     uint64   `json:"tokens,omitempty"`
	Per        string   `json:"per,omitempty"`
	PerFrom    string   `json:"per_from,omitempty"` // all periods from this one to PerTo explain the log equally well
	PerTo      string   `json:"per_to,omitempty"`
	Undecided  []string `json:"undecided,omitempty"` // what cannot be concluded from the log, and why
	Peak       *Peak    `json:"most,omitempty"`
	AtOnce     uint64   `json:"at_once"`                // tokens of a full key
	AtOnceFrom uint64   `json:"at_once_from,omitempty"` // the smallest number that explains the log as well as AtOnce
	AtOnceTo   uint64   `json:"at_once_to,omitempty"`
	Queued     uint64   `json:"queued,omitempty"` // the largest number of requests that wait
	Refusals   bool     `json:"refusals_count"`
	Misfits    int      `json:"misfits"`
	Confidence float64  `json:"confidence"`
	RunnerUp   string   `json:"runner_up,omitempty"`
	Same       []string `json:"same,omitempty"`
	Status     int      `json:"refusal_status,omitempty"`
	Fields     []Field  `json:"fields,omitempty"`
	Key        string   `json:"key,omitempty"`
	Ways       []*Way   `json:"ways,omitempty"`
	NotTried   []string `json:"not_tried,omitempty"`
	Rules      string   `json:"rules,omitempty"`
	Faults     int      `json:"faults"`

	result    fit.Result
	log       []fit.Request
	decisions int
}

// Run audits the server that the client connects to.
func Run(ctx context.Context, client Client, plainRequest Request, t Target, o Options) (*Report, error) {
	a := newAuditor(client, plainRequest, o)
	reserve := o.Requests / 4
	a.patterns(ctx, reserve)
	if len(a.log) == 0 {
		return nil, a.err
	}
	r := &Report{Source: t.URL.String(), Requests: a.sent, Status: a.refused, Answers: otherAnswers(a.log)}
	if a.err != nil {
		r.Stopped = a.err.Error()
	}
	requests := a.requests()
	result, err := fit.Log(requests, 0)
	r.setResult(requests, result, err)
	if r.Kind == "" && a.err != nil { // there may be a limit that the audit did not reach
		return nil, a.err
	}
	if r.Kind != "" {
		r.Peak = peakOf(requests, a.burst, result)
		if len(r.Undecided) == 0 { // claims can only be checked if the limit is known
			r.Fields = checkFields(a.log, result)
		}
		if reason := a.reasonNotToTry(r, result); reason != "" {
			r.NotTried = []string{"ways around the limit: " + reason}
		} else if r.Ways = ways(plainRequest, t.URL.Host, t.Address.Addr()); a.tryWays(ctx, r.Ways) {
			neighborWays, notTried := a.tryNeighbors(ctx, r.Ways, t.Address.Addr(), result.Limit.Capacity(result.Limit.Kind))
			r.Ways, r.NotTried = append(r.Ways, neighborWays...), notTried
		}
	}
	r.Requests, r.Seconds = a.sent, time.Since(a.begin).Seconds()
	r.judge()
	if len(r.Undecided) > 0 { // in this case it is unknown whether something is wrong
		r.Faults++
		r.Undecided = append(r.Undecided, "audit again from a machine with less other work, or for longer: --time")
	}
	r.Rules = rules(result, r)
	return r, ctx.Err()
}

func otherAnswers(log []Exchange) map[int]int {
	counts := map[int]int{}
	for _, s := range log {
		if s.Allowed && s.Status/100 != 2 {
			counts[s.Status]++
		}
	}
	return counts
}

func (r *Report) setResult(log []fit.Request, result fit.Result, err error) {
	r.Admitted, r.decisions = result.Admitted, result.Requests
	if err != nil {
		return
	}
	r.log, r.result = log, result
	r.Kind, r.AtOnce, r.Misfits, r.Confidence = kindName(result.Limit), result.Limit.Capacity(result.Limit.Kind), result.Misfits, result.Confidence()
	if !result.Returned {
		r.Kind = "unknown"
		return
	}
	r.Tokens, r.Per, r.Queued, r.Refusals = result.Limit.Tokens, shortDuration(result.Limit.Per), result.Limit.Queued, result.Limit.Refusals
	r.PerFrom, r.PerTo, r.Undecided = shortDuration(result.Shortest), shortDuration(result.Longest), undecided(result)
	r.AtOnceFrom, r.AtOnceTo = result.Fewest, result.Most
	if result.RunnerUp.Per > 0 {
		r.RunnerUp = fmt.Sprintf("%s, %s: %d misfits", kindName(result.RunnerUp), numbers(result.RunnerUp), result.RunnerUpMisfits)
	}
	for _, kind := range result.Same {
		r.Same = append(r.Same, kind.String())
	}
}

// judge finds out whether a client's address selects its bucket. It also counts the problems that a maintainer of the
// server should correct.
func (r *Report) judge() {
	for _, f := range r.Fields {
		if f.Wrong > 0 {
			r.Faults++
		}
	}
	if r.Peak != nil && r.Peak.TooMany > 0 {
		r.Faults++
	}
	if r.Kind == "" && len(r.Answers) > 0 { // the answers may be refusals, or the path may be wrong
		r.Faults++
	}
	isKnown := false
	for _, w := range r.Ways {
		isKnown = isKnown || w.Passes || w.Refused
		if w.Passes && w.SameAnswer && w.Kind != "address" {
			r.Faults++
		}
	}
	if !isKnown {
		return
	}
	switch i := slices.IndexFunc(r.Ways, func(w *Way) bool { return w.Kind == "address" }); {
	case i < 0:
		r.Key = "not known: this machine has no other address to ask from"
	case r.Ways[i].Passes:
		r.Key = "the address of the client"
	case r.Ways[i].Refused:
		r.Key = "not the address of the client"
	}
}

func kindName(l fit.Limit) string {
	if l.Queued > 0 {
		return "bucket in which requests wait"
	}
	return l.Kind.String()
}

func numbers(l fit.Limit) string {
	text := fmt.Sprintf("%d in %s", l.Tokens, shortDuration(l.Per))
	if l.Kind == check.Bucket || l.Kind == check.BatchRefill {
		text += fmt.Sprintf(", burst %d", l.Burst)
	}
	return text
}

func unit(d time.Duration) string {
	switch {
	case d == time.Second || d == time.Minute || d == time.Hour:
		return shortDuration(d)[1:]
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// shortDuration returns a duration without its zeros: 1m, not 1m0s.
func shortDuration(d time.Duration) string {
	text := d.Round(time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

func withArticle(name string) string {
	if strings.HasPrefix(name, "a") {
		return "an " + name
	}
	return "a " + name
}

// rules returns the lines of a rule file that give weir serve the same limit.
func rules(result fit.Result, r *Report) string {
	if !result.Returned {
		return ""
	}
	l := result.Limit
	var b strings.Builder
	for _, text := range r.Undecided {
		fmt.Fprintf(&b, "# undecided: %s\n", text)
	}
	if l.Refusals {
		b.WriteString("# not the same: the server charges refused requests, too\n")
	}
	fmt.Fprintf(&b, "rules:\n  - name: audited\n    rate: %d/%s\n", l.Tokens, unit(l.Per))
	algorithm := map[check.Promise]string{check.BatchRefill: "batch-refill", check.FixedWindow: "fixed-window",
		check.AlignedWindow: "fixed-window", check.SlidingExact: "sliding-log", check.SlidingEstimate: "sliding-window"}[l.Kind]
	if algorithm != "" {
		fmt.Fprintf(&b, "    algorithm: %s\n", algorithm)
	}
	if l.Kind == check.AlignedWindow {
		b.WriteString("    aligned: true\n")
	}
	if l.Kind == check.Bucket || l.Kind == check.BatchRefill {
		fmt.Fprintf(&b, "    burst: %d\n", l.Burst-l.Queued)
	}
	if l.Queued > 0 {
		wait := time.Duration(float64(l.Per) / float64(l.Tokens) * float64(l.Queued))
		fmt.Fprintf(&b, "    max_wait: %dms\n", wait.Milliseconds())
	}
	if r.Key == "not the address of the client" {
		b.WriteString("    key: global\n")
	}
	return b.String()
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d requests in %.0f s, %d admitted\n", r.Source, r.Requests, r.Seconds, r.Admitted)
	if r.Stopped != "" {
		fmt.Fprintf(&b, "%s\n", r.Stopped)
	}
	for _, status := range slices.Sorted(maps.Keys(r.Answers)) {
		fmt.Fprintf(&b, "%d admitted requests have status %d; if that is a refusal: --refused %d\n", r.Answers[status], status, status)
	}
	switch r.Kind {
	case "":
		fmt.Fprintf(&b, "\nno limit was met\n")
	case "unknown":
		fmt.Fprintf(&b, "\nlimit     %d at once. Nothing came back while the audit ran, so its kind and period are not known\n", r.AtOnce)
	default:
		r.writeLimit(&b)
	}
	if text := picture(r.log, r.result); text != "" {
		fmt.Fprintf(&b, "\n%s", text)
	}
	if len(r.Fields) > 0 {
		b.WriteString("\nfields\n")
	}
	for _, f := range r.Fields {
		verdict := "true"
		if f.Wrong > 0 {
			verdict = fmt.Sprintf("not true %d times: %s", f.Wrong, f.Mistake)
		}
		fmt.Fprintf(&b, "  %-22s %-14s %d answers, %s\n", f.Name, f.Example, f.Answers, verdict)
	}
	r.writeWays(&b)
	if r.Rules != "" {
		fmt.Fprintf(&b, "\nthis limit for weir serve:\n\n%s", r.Rules)
	}
	fmt.Fprintf(&b, "\n%d to look at\n", r.Faults)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeLimit(b *strings.Builder) {
	fmt.Fprintf(b, "\nlimit     %s: %d in %s, %d at once\n", r.Kind, r.Tokens, r.Per, r.AtOnce)
	if r.Queued > 0 {
		fmt.Fprintf(b, "          of a burst up to %d wait their turn\n", r.Queued)
	}
	fmt.Fprintf(b, "explains  %d of %d decisions", r.Admitted+r.refusals()-r.Misfits, r.Admitted+r.refusals())
	if r.RunnerUp != "" {
		fmt.Fprintf(b, "; the next best is %s", withArticle(r.RunnerUp))
	}
	fmt.Fprintf(b, "\nsure      %.0f %%", 100*r.Confidence)
	if len(r.Same) > 0 {
		same := make([]string, len(r.Same))
		for i, kind := range r.Same {
			same[i] = withArticle(kind)
		}
		fmt.Fprintf(b, ": these requests cannot distinguish it from %s", strings.Join(same, " or "))
	}
	b.WriteString("\n")
	for _, text := range r.Undecided {
		fmt.Fprintf(b, "undecided %s\n", text)
	}
	if r.Peak != nil {
		r.Peak.write(b)
	}
	if r.Refusals {
		b.WriteString("refused   requests are charged, too\n")
	}
	if r.Status != 0 {
		fmt.Fprintf(b, "refusals  have status %d\n", r.Status)
	}
}

// writeWays writes which other ways to send the request pass while the plain request is refused.
func (r *Report) writeWays(b *strings.Builder) {
	if r.Key == "" && len(r.NotTried) == 0 {
		return
	}
	fmt.Fprintf(b, "\nkey       %s\n", cmp.Or(r.Key, "not known"))
	var unknown []string
	for _, w := range r.Ways {
		switch {
		case w.Passes && w.Kind == "address":
		case w.Passes && w.Kind == "IPv6":
			fmt.Fprintf(b, "  has a bucket of its own: an address of the same IPv6 network, %s\n", w.Name)
		case w.Passes && w.SameAnswer:
			fmt.Fprintf(b, "  passes while the plain request is refused: %s %s\n", w.Kind, w.Name)
		case w.Passes:
			fmt.Fprintf(b, "  is not refused, but has another answer (%d): %s %s\n", w.Status, w.Kind, w.Name)
		case !w.Refused:
			unknown = append(unknown, w.Name)
		}
	}
	switch n := len(unknown); {
	case n > 4:
		fmt.Fprintf(b, "  not found out: %d of %d ways\n", n, len(r.Ways))
	case n > 0:
		fmt.Fprintf(b, "  not found out: %s\n", strings.Join(unknown, ", "))
	}
	for _, text := range r.NotTried {
		fmt.Fprintf(b, "  not tried: %s\n", text)
	}
}

func (r *Report) refusals() int { return r.decisions - r.Admitted }
