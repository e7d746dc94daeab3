package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/httplimit/reading"
)

// hostWarnings returns warnings about rules and exceptions for a host whose upstream does not get the Host header. Such
// an upstream answers requests for any host in the same way. So a client can choose whether the rule or exception
// applies.
func (f *File) hostWarnings() (warnings []string) {
	for i := range f.Rules {
		r := &f.Rules[i]
		if u := f.upstreamWithoutHost(r.Match.Hosts); u != nil {
			warnings = append(warnings, fmt.Sprintf("rule %s: match: host: a client that sends another host avoids the limit, "+
				"and %s answers it in the same way because it does not get the host: set keep_host, or a route for the host", r.Name, u))
		}
		if u := f.upstreamWithoutHost([]string{"any"}); u != nil && len(r.Match.Hosts) == 0 && r.Key.Uses(SourceHost) {
			warnings = append(warnings, fmt.Sprintf("rule %s: key: host: each host that a client sends is a bucket of its "+
				"own, and %s answers all in the same way because it does not get the host: set keep_host, or a route for the host", r.Name, u))
		}
		for _, m := range r.Match.Not {
			warnings = append(warnings, f.exceptionHostWarnings(fmt.Sprintf("rule %s: not", r.Name), m.Hosts)...)
		}
	}
	for _, m := range f.Exempt {
		warnings = append(warnings, f.exceptionHostWarnings("exempt", m.Hosts)...)
	}
	return warnings
}

func (f *File) exceptionHostWarnings(subject string, hosts []string) []string {
	u := f.upstreamWithoutHost(hosts)
	if u == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: host: any client can send %s, and %s answers it like any other because it does "+
		"not get the host: set keep_host, or a route for the host", subject, strings.Join(hosts, " or "), u)}
}

// upstreamWithoutHost returns an upstream that does not get the Host header, although it serves these hosts and other
// hosts. It returns nil if there is none.
func (f *File) upstreamWithoutHost(hosts []string) *Upstream {
	if len(hosts) == 0 {
		return nil
	}
	for i := range f.Routes {
		route := &f.Routes[i]
		switch {
		case len(route.Match.Hosts) == 0 && !route.Upstream.KeepHost:
			return &route.Upstream
		case getsAll(&route.Match, hosts):
			return nil
		}
	}
	if f.Upstream != nil && !f.Upstream.KeepHost {
		return f.Upstream
	}
	return nil
}

// getsAll reports whether a route gets every request to the given hosts.
func getsAll(m *reading.Match, hosts []string) bool {
	return len(m.Paths)+len(m.Methods)+len(m.Headers) == 0 &&
		(len(m.Hosts) == 0 || !slices.ContainsFunc(hosts, func(host string) bool {
			return !m.MatchesHost(strings.Replace(host, "*", "any", 1))
		}))
}
