package rules

import (
	"net/http"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit/reading"
)

// LimitOf returns the limit of a request as text. It is the limit of the request's key or tier, or else the rule's own.
func (r *Rule) LimitOf(request *http.Request) string {
	if r.lookup != nil {
		return rulefile.LimitText(r.lookup.effectivePolicy(request))
	}
	return r.Rule.LimitIn(r.tierOf(request))
}

// CostOf returns how many tokens a request takes.
func (r *Rule) CostOf(request *http.Request) uint64 {
	if f := cost(r.Cost); f != nil {
		return f(request)
	}
	return 1
}

// Unmet returns the parts of the rule's match that a request does not meet, such as "path". If servers read a part in
// different ways, the request need meet it in only one of them.
func (r *Rule) Unmet(request *http.Request) (unmet []string) {
	m := &r.Match
	for _, part := range []struct {
		name  string
		match reading.Match
	}{
		{"host", reading.Match{Hosts: m.Hosts}},
		{"path", reading.Match{Paths: m.Paths, KeepCase: m.KeepCase, KeepType: m.KeepType}},
		{"method", reading.Match{Methods: m.Methods}},
		{"header", reading.Match{Headers: m.Headers, KeepCase: m.KeepCase}},
		{"query", reading.Match{Query: m.Query, KeepCase: m.KeepCase}},
		{"client", reading.Match{Clients: m.Clients}},
		{"not", reading.Match{Not: m.Not}},
	} {
		if !part.match.Meets(request, r.client) {
			unmet = append(unmet, part.name)
		}
	}
	return unmet
}

// IsUnlimited reports whether the rule does not count a request, because its key or tier has no limit.
func (r *Rule) IsUnlimited(request *http.Request) bool {
	if r.lookup != nil {
		return r.lookup.effectivePolicy(request) == engine.Unlimited()
	}
	return r.ConstantOf(r.tierOf(request)) == rulefile.Unlimited
}
