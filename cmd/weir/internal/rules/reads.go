package rules

import "github.com/weir-go/weir/cmd/weir/internal/config"

// Reads says what a rule looks at in a request, for requests of which not everything is known. Only headers, cookies
// and the host are listed: every request has the others, which are its client, its method and its path.
type Reads struct {
	Match []config.Source // to tell whether the rule is for the request
	Key   []config.Source // to tell the bucket
	Tier  []config.Source
	Cost  []config.Source
}

// Reads returns what the rule looks at.
func (r *Rule) Reads() (all Reads) {
	if len(r.Match.Hosts) > 0 {
		all.Match = append(all.Match, config.Source{Kind: config.SourceHost})
	}
	for _, h := range r.Match.Headers {
		all.Match = append(all.Match, header(h.Name))
	}
	for _, part := range r.Key {
		for _, s := range part {
			switch s.Kind {
			case config.SourceHeader, config.SourceCookie, config.SourceHost:
				all.Key = append(all.Key, s)
			case config.SourceIP, config.SourcePath, config.SourceMethod, config.SourceGlobal, config.SourceNone:
			}
		}
	}
	if r.Tiers != nil {
		all.Tier = []config.Source{header(r.Tiers.Header)}
	}
	if r.Cost.Header != "" {
		all.Cost = []config.Source{header(r.Cost.Header)}
	}
	return all
}

func header(name string) config.Source { return config.Source{Kind: config.SourceHeader, Name: name} }
