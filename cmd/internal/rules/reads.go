package rules

import (
	"github.com/weir-go/weir/cmd/internal/rulefile"

	"github.com/weir-go/weir/httplimit/reading"
)

// Reads lists what a rule reads from a request: headers, cookies, query parameters and the host. It matters for
// requests that are not completely known, such as those of a log. Their client, method and path are always known.
type Reads struct {
	Match []rulefile.Source // to decide whether the rule applies
	Key   []rulefile.Source // to find the bucket
	Tier  []rulefile.Source
	Quota []rulefile.Source // headers of a trusted proxy, which may write several lines of them
	Cost  []rulefile.Source
}

// Reads returns what the rule reads.
func (r *Rule) Reads() (all Reads) {
	all.Match = readsOf(&r.Match)
	for i := range r.Match.Not {
		all.Match = append(all.Match, readsOf(&r.Match.Not[i])...)
	}
	for _, part := range r.Key {
		all.Key = append(all.Key, named(part)...)
	}
	if r.Quota != nil {
		all.Tier = append(all.Tier, named(r.Quota.By)...)
		if r.Quota.Header != "" {
			all.Quota = []rulefile.Source{header(r.Quota.Header)}
		}
	}
	if r.Tiers != nil {
		all.Tier = []rulefile.Source{header(r.Tiers.Header)}
	}
	if r.Cost.Header != "" {
		all.Cost = []rulefile.Source{header(r.Cost.Header)}
	}
	return all
}

// named returns the sources in a part of a key that a request may lack.
func named(part rulefile.KeyPart) (all []rulefile.Source) {
	for _, s := range part {
		switch s.Kind {
		case rulefile.SourceHeader, rulefile.SourceCookie, rulefile.SourceQuery, rulefile.SourceHost:
			all = append(all, s)
		case rulefile.SourceIP, rulefile.SourcePath, rulefile.SourceMethod, rulefile.SourceGlobal, rulefile.SourceNone:
		}
	}
	return all
}

// readsOf returns the sources in a match that a request may lack.
func readsOf(m *reading.Match) (all []rulefile.Source) {
	if len(m.Hosts) > 0 {
		all = append(all, rulefile.Source{Kind: rulefile.SourceHost})
	}
	for _, f := range m.Headers {
		all = append(all, header(f.Name))
	}
	for _, f := range m.Query {
		all = append(all, rulefile.Source{Kind: rulefile.SourceQuery, Name: f.Name})
	}
	return all
}

// ExemptReads returns what the exemptions of a file read.
func ExemptReads(f *rulefile.File) (all []rulefile.Source) {
	for i := range f.Exempt {
		all = append(all, readsOf(&f.Exempt[i])...)
	}
	return all
}

func header(name string) rulefile.Source {
	return rulefile.Source{Kind: rulefile.SourceHeader, Name: name}
}
