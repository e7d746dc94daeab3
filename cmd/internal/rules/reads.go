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
func (r *Rule) Reads() (reads Reads) {
	reads.Match = matchSources(&r.Match)
	for i := range r.Match.Not {
		reads.Match = append(reads.Match, matchSources(&r.Match.Not[i])...)
	}
	for _, part := range r.Key {
		reads.Key = append(reads.Key, optionalSources(part)...)
	}
	if r.Quota != nil {
		reads.Tier = append(reads.Tier, optionalSources(r.Quota.By)...)
		if r.Quota.Header != "" {
			reads.Quota = []rulefile.Source{header(r.Quota.Header)}
		}
	}
	if r.Tiers != nil {
		reads.Tier = []rulefile.Source{header(r.Tiers.Header)}
	}
	if r.Cost.Header != "" {
		reads.Cost = []rulefile.Source{header(r.Cost.Header)}
	}
	return reads
}

// optionalSources returns the sources in a part of a key that a request may lack.
func optionalSources(part rulefile.KeyPart) (sources []rulefile.Source) {
	for _, s := range part {
		switch s.Kind {
		case rulefile.SourceHeader, rulefile.SourceCookie, rulefile.SourceQuery, rulefile.SourceHost:
			sources = append(sources, s)
		case rulefile.SourceIP, rulefile.SourcePath, rulefile.SourceMethod, rulefile.SourceGlobal, rulefile.SourceNone:
		}
	}
	return sources
}

// matchSources returns the sources in a match that a request may lack.
func matchSources(m *reading.Match) (sources []rulefile.Source) {
	if len(m.Hosts) > 0 {
		sources = append(sources, rulefile.Source{Kind: rulefile.SourceHost})
	}
	for _, f := range m.Headers {
		sources = append(sources, header(f.Name))
	}
	for _, f := range m.Query {
		sources = append(sources, rulefile.Source{Kind: rulefile.SourceQuery, Name: f.Name})
	}
	return sources
}

// ExemptReads returns what the exemptions of a file read.
func ExemptReads(f *rulefile.File) (sources []rulefile.Source) {
	for i := range f.Exempt {
		sources = append(sources, matchSources(&f.Exempt[i])...)
	}
	return sources
}

func header(name string) rulefile.Source {
	return rulefile.Source{Kind: rulefile.SourceHeader, Name: name}
}
