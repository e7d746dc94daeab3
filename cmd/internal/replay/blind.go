package replay

import (
	"fmt"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
)

// logFields says which data a log has for each request. A rule that needs other data is not judged, because the result
// would be a guess.
type logFields struct {
	fields accesslog.Fields // the fields that the log has in addition to client, method and path
	host   string           // the host of all requests; "" if it is unknown
}

// blindReason returns why a rule cannot be judged from the log, or "" if it can be judged.
func (l *logFields) blindReason(r *rules.Rule) string {
	if r.IsInFlight() {
		return "a log does not say which requests were in flight at one time"
	}
	if r.Tokens != nil {
		return "the cost comes from the answer, which the log does not have: see weir replay --usage for tokens of language models"
	}
	reads := r.Reads()
	for _, use := range []struct {
		sources                 []rulefile.Source
		hostReason, otherReason string
	}{
		{reads.Match, "the log does not have the host of a request: name it with --host",
			"the log does not have the %s %s that it matches"},
		{reads.Key, "its key has the host, which the log does not have: name it with --host",
			"the log does not have the %s %s of its key"},
	} {
		for _, s := range use.sources {
			switch {
			case l.contains(s):
			case s.Kind == rulefile.SourceHost:
				return use.hostReason
			default:
				return fmt.Sprintf(use.otherReason, s.Kind, s.Name)
			}
		}
	}
	return ""
}

// notes lists the parts of a rule that a server would judge differently, because the log does not have the data.
func (l *logFields) notes(r *rules.Rule) (list []string) {
	reads := r.Reads()
	for _, s := range reads.Tier {
		if !l.contains(s) {
			list = append(list, fmt.Sprintf("all requests are in the rule's own tier: the log does not have %s", s.Name))
		}
	}
	for _, s := range reads.Quota {
		if !l.contains(s) {
			list = append(list, fmt.Sprintf("every request is under the limit for requests without the header: the log does not have %s", s.Name))
		}
	}
	for _, s := range reads.Cost {
		if !l.contains(s) {
			list = append(list, fmt.Sprintf("every request costs %d: the log does not have %s", r.Cost.Default, s.Name))
		}
	}
	return list
}

// exemptNotes lists the exemptions that the log does not show. Requests that the server exempts for these reasons are
// counted.
func (l *logFields) exemptNotes(f *rulefile.File) (list []string) {
	for _, s := range rules.ExemptReads(f) {
		if !l.contains(s) {
			list = append(list, fmt.Sprintf("requests that are exempt by %s are counted: the log does not have it", s))
		}
	}
	return list
}

// contains reports whether the log has the data of this source for every request.
func (l *logFields) contains(s rulefile.Source) bool {
	switch s.Kind {
	case rulefile.SourceHeader:
		return l.fields.Header(s.Name)
	case rulefile.SourceCookie:
		return l.fields.Header("Cookie")
	case rulefile.SourceHost:
		return l.fields.Host || l.host != ""
	case rulefile.SourceIP, rulefile.SourceQuery, rulefile.SourcePath, rulefile.SourceMethod, rulefile.SourceGlobal,
		rulefile.SourceNone:
	}
	return true
}
