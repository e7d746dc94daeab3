package replay

import (
	"fmt"
	"io"

	"github.com/weir-go/weir/cmd/internal/number"
)

// WriteTable writes the report for people: all rules, and then the most refused keys of each rule, at most top.
func (r *RulesReport) WriteTable(w io.Writer, top int) error {
	t := newTable(&r.Log)
	t.totals(
		row{"requests", r.Requests, ""},
		row{"refused", r.Refused, share(r.Refused, r.Requests)},
		row{"not HTTP", r.NotHTTP, ""})
	t.asLogged(r.Refused, r.AsLogged)
	t.reasons()
	t.rules(r)
	for i := range r.Rules {
		rule := &r.Rules[i]
		if keys := rule.RefusedKeys[:min(top, len(rule.RefusedKeys))]; len(keys) > 0 {
			t.keys(fmt.Sprintf("%s: most refused", rule.Rule.Name), keys)
		}
	}
	return t.write(w, "")
}

func (t *table) rules(r *RulesReport) {
	g := t.grid("rule", t.number("matched"), t.number("refused"), "   share", t.number("keys"), "keys refused",
		"refused by others")
	for i := range r.Rules {
		if o := &r.Rules[i]; o.Blind == "" {
			g.line(o.Rule.Name, number.Comma(o.Matched), number.Comma(o.Refused), share(o.Refused, o.Matched),
				number.Comma(o.Keys), number.Comma(uint64(len(o.RefusedKeys))), number.Comma(o.Elsewhere))
		} else {
			g.line(o.Rule.Name, "-", "-", "-", "-", "-", "-")
		}
	}
	g.flush()
	fmt.Fprintln(&t.out)
	for i := range r.Rules {
		for _, remark := range r.Rules[i].Remarks() {
			fmt.Fprintf(&t.out, "%s: %s\n", r.Rules[i].Rule.Name, remark)
		}
	}
}

// Remarks describes the rule, and explains its figures.
func (r *RuleReport) Remarks() []string {
	if r.Blind != "" {
		return []string{"cannot be judged from this log: " + r.Blind}
	}
	remarks := []string{fmt.Sprintf("%s, by %v, for %v", r.Rule.OwnLimit(), r.Rule.Key, r.Rule.Match)}
	if r.Rule.Shadow {
		remarks = append(remarks, "shadow: these are the refusals that it would make; they are not included in all refused")
	}
	remarks = append(remarks, r.Notes...)
	if note := r.EvictionNote(); note != "" {
		remarks = append(remarks, note)
	}
	return remarks
}
