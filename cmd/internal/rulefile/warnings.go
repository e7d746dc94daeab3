package rulefile

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

// Warnings returns warnings about parts of a valid file that are probably not intended, one sentence each.
func (f *File) Warnings() (warnings []string) {
	for _, p := range f.TrustedProxies {
		if p.Bits() == 0 {
			warnings = append(warnings, fmt.Sprintf("trusted_proxies: %s is every address: any client can then claim any "+
				"address in %s, and has a new bucket for each", p, f.ClientIP.header()))
			for i := range f.Rules {
				if q := f.Rules[i].Quota; q != nil && q.Header != "" {
					warnings = append(warnings, fmt.Sprintf("trusted_proxies: %s is every address: any client can then set its limit under the rule "+
						"%[3]s in %[2]s", p, q.Header, f.Rules[i].Name))
				}
			}
		}
	}
	upstreams := make([]*Upstream, 0, len(f.Routes)+1)
	for i := range f.Routes {
		upstreams = append(upstreams, &f.Routes[i].Upstream)
	}
	if f.Upstream != nil {
		upstreams = append(upstreams, f.Upstream)
	}
	for _, u := range upstreams {
		warnings = append(warnings, u.warnings(f)...)
	}
	for i := range f.Rules {
		warnings = append(warnings, f.Rules[i].priceWarnings()...)
	}
	warnings = append(append(warnings, f.hostWarnings()...), f.droppedKeyWarnings(upstreams)...)
	return append(warnings, f.doubts(upstreams)...)
}

// priceWarnings returns a warning for each listed model that costs more than a model that is not listed. The client
// writes the name of the model. So a client could get the lower price with another name.
func (r *Rule) priceWarnings() (warnings []string) {
	if r.Tokens == nil {
		return nil
	}
	ruleWeights := r.Tokens.Count.Weights
	for _, m := range r.Tokens.Count.Models {
		if w := m.Weights; w.Input > ruleWeights.Input || w.Cached > ruleWeights.Cached || w.CacheWrite > ruleWeights.CacheWrite || w.Output > ruleWeights.Output {
			warnings = append(warnings, fmt.Sprintf("rule %s: count: the model %q has higher weights than an unlisted model, "+
				"and clients choose the name of the model: give the rule's own weights the highest numbers", r.Name, m.Name+textIf(m.Prefix, "*")))
		}
	}
	return warnings
}

func (u *Upstream) warnings(f *File) (warnings []string) {
	for _, t := range u.Targets {
		for _, l := range f.Listen {
			if t.Socket != "" && "unix:"+t.Socket == l.Address || t.Socket == "" && sameServer(t.URL, l.Address) {
				warnings = append(warnings, fmt.Sprintf("upstream: %s is where weir itself listens, at %s: requests would go round "+
					"until they time out", t, l.Address))
			}
		}
	}
	if h := u.Health; h != nil && h.Timeout > h.Interval {
		warnings = append(warnings, fmt.Sprintf("upstream: health: a check may take %v and one begins every %v: the next one waits for "+
			"the last", h.Timeout, h.Interval))
	}
	return warnings
}

// sameServer reports whether a URL leads to an address on which weir listens on this machine.
func sameServer(u *url.URL, listenAddress string) bool {
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return overlap(net.JoinHostPort(loopback(u.Hostname()), cmp.Or(u.Port(), port)), loopbackOf(listenAddress)) &&
		(isLoopback(u.Hostname()) || !isAllHosts(hostOf(listenAddress)))
}

// loopbackOf returns the address with 127.0.0.1 as its host if the host is localhost.
func loopbackOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return net.JoinHostPort(loopback(host), port)
}

func loopback(host string) string {
	if host == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}).String()
	}
	return host
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address) // the address was checked before
	return host
}
