package rules

import (
	"github.com/weir-go/weir/cmd/internal/config"

	"github.com/weir-go/weir/httplimit/reading"
)

// Reads says what a rule looks at in a request, for requests of which not everything is known. Only headers, cookies,
// query parameters and the host are listed: every request has the others, which are its client, method and path.
type Reads struct {
	Match []config.Source // to tell whether the rule is for the request
	Key   []config.Source // to tell the bucket
	Tier  []config.Source
	Cost  []config.Source
}

// Reads returns what the rule looks at.
func (r *Rule) Reads() (all Reads) {
	all.Match = readsOf(&r.Match)
	for i := range r.Match.Not {
		all.Match = append(all.Match, readsOf(&r.Match.Not[i])...)
	}
	for _, part := range r.Key {
		for _, s := range part {
			switch s.Kind {
			case config.SourceHeader, config.SourceCookie, config.SourceQuery, config.SourceHost:
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

// readsOf returns what a match looks at.
func readsOf(m *reading.Match) (all []config.Source) {
	if len(m.Hosts) > 0 {
		all = append(all, config.Source{Kind: config.SourceHost})
	}
	for _, f := range m.Headers {
		all = append(all, header(f.Name))
	}
	for _, f := range m.Query {
		all = append(all, config.Source{Kind: config.SourceQuery, Name: f.Name})
	}
	return all
}

// ExemptReads returns what the exemptions of a file look at.
func ExemptReads(f *config.File) (all []config.Source) {
	for i := range f.Exempt {
		all = append(all, readsOf(&f.Exempt[i])...)
	}
	return all
}

func header(name string) config.Source { return config.Source{Kind: config.SourceHeader, Name: name} }
