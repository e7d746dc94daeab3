package replay

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/cmd/weir/internal/rules"
)

// An access log holds the client, method, path, referer and user agent of a request, and nothing else: to take for
// granted what it does not hold would be a guess. host is the host that the log is of, "" if that is not known.

// blind says why a rule cannot be judged from a log; "" if it can.
func blind(r *rules.Rule, host string) string {
	reads := r.Reads()
	for _, use := range []struct {
		of              []config.Source
		ofHost, ofOther string
	}{
		{reads.Match, "the log does not say for which host a request was: name it by --host",
			"the log does not hold the %s %s that it matches"},
		{reads.Key, "its key has the host, which the log does not: name it by --host",
			"the log does not hold the %s %s of its key"},
	} {
		for _, s := range use.of {
			switch {
			case logged(s, host):
			case s.Kind == config.SourceHost:
				return use.ofHost
			default:
				return fmt.Sprintf(use.ofOther, s.Kind, s.Name)
			}
		}
	}
	return ""
}

// notes says what of a rule is judged otherwise than a server would, because the log does not hold it.
func notes(r *rules.Rule) (all []string) {
	reads := r.Reads()
	for _, s := range reads.Tier {
		if !logged(s, "") {
			all = append(all, fmt.Sprintf("everybody is in the rule's own tier: the log does not hold %s", s.Name))
		}
	}
	for _, s := range reads.Cost {
		if !logged(s, "") {
			all = append(all, fmt.Sprintf("every request costs %d: the log does not hold %s", r.Cost.Default, s.Name))
		}
	}
	return all
}

// exemptNotes says which exemptions are not found in a log: their requests are counted.
func exemptNotes(f *config.File, host string) (all []string) {
	for _, s := range rules.ExemptReads(f) {
		if !logged(s, host) {
			all = append(all, fmt.Sprintf("requests that are exempt by %s are counted: the log does not hold it", s))
		}
	}
	return all
}

// logged reports whether the source is known of every request of a log.
func logged(s config.Source, host string) bool {
	switch s.Kind {
	case config.SourceHeader:
		return slices.Contains(loggedHeaders, s.Name)
	case config.SourceCookie:
		return false
	case config.SourceHost:
		return host != ""
	case config.SourceIP, config.SourceQuery, config.SourcePath, config.SourceMethod, config.SourceGlobal,
		config.SourceNone:
	}
	return true
}
