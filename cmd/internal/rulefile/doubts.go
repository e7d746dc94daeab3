package rulefile

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/limits/spec"
)

// doubts returns warnings about a valid file. They are about rules, exceptions and routes that do less than they seem
// to do, and say what to write instead.
func (f *File) doubts(upstreams []*Upstream) (warnings []string) {
	for i := range f.Exempt {
		warnings = append(warnings, exceptionDoubts("exempt", &f.Exempt[i])...)
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		subject := "rule " + r.Name
		for j := range r.Match.Not {
			warnings = append(warnings, exceptionDoubts(subject+": not", &r.Match.Not[j])...)
		}
		warnings = append(warnings, literalDoubts(subject+": match", &r.Match)...)
		warnings = append(warnings, f.slashDoubts(r)...)
		if r.Constant == Unlimited && r.Tiers == nil && r.Quota == nil {
			warnings = append(warnings, f.unlimitedDoubts(r)...)
		}
		if len(r.Refund) > 0 && returnsAll(r.Refund) {
			warnings = append(warnings, subject+": refund_status: every answer has one of these, so every request gets its "+
				"tokens back and the rule limits nothing: leave out the statuses that should count")
		}
	}
	for i := range f.Routes {
		warnings = append(warnings, literalDoubts(fmt.Sprintf("route %d", i+1), &f.Routes[i].Match)...)
		for j := range i {
			if covers(&f.Routes[j].Match, &f.Routes[i].Match) {
				warnings = append(warnings, fmt.Sprintf("route %d: no request reaches it, because route %d, for %s, gets all "+
					"of them: move it before that route",
					i+1, j+1, f.Routes[j].Match))
				break
			}
		}
	}
	return append(warnings, f.inventedKeyDoubts(upstreams)...)
}

// exceptionDoubts returns warnings about an exception, which applies to one rule or to all rules.
func exceptionDoubts(subject string, m *reading.Match) []string {
	warnings := literalDoubts(subject, m)
	onlyPaths := len(m.Hosts)+len(m.Methods)+len(m.Headers)+len(m.Query)+len(m.Clients) == 0
	if onlyPaths && slices.ContainsFunc(m.Paths, isEveryPath) {
		warnings = append(warnings, subject+": path: / is every path, so no request is limited: write /{$} for that page alone")
	}
	if len(m.Clients) > 0 {
		return warnings
	}
	for _, field := range m.Headers {
		warnings = append(warnings, fmt.Sprintf("%s: header %s: any client can send it to avoid the limit: add the client it "+
			"comes from, such as client: 10.0.0.0/8", subject, field.Name))
	}
	for _, field := range m.Query {
		warnings = append(warnings, fmt.Sprintf("%s: query %s: any client can send it to avoid the limit: add the client it "+
			"comes from, such as client: 10.0.0.0/8", subject, field.Name))
	}
	return warnings
}

func isEveryPath(p reading.Path) bool { return p.String() == "/" || p.String() == "prefix /" }

// literalDoubts returns warnings about parts of a path that are patterns in other programs. In a rule file, they are
// literal text.
func literalDoubts(subject string, m *reading.Match) (warnings []string) {
	for _, p := range m.Paths {
		if p.IsText() {
			continue
		}
		for _, segment := range strings.Split(p.String(), "/") {
			if name, ok := strings.CutPrefix(segment, ":"); ok && name != "" {
				warnings = append(warnings, fmt.Sprintf("%s: path: %s is only that text: write {%s} for any segment", subject, p, name))
			} else if name, ok := strings.CutPrefix(segment, "<"); ok && strings.HasSuffix(name, ">") {
				_, name, _ = strings.Cut(":"+strings.TrimSuffix(name, ">"), ":")
				warnings = append(warnings, fmt.Sprintf("%s: path: %s is only that text: write {%s} for any segment", subject, p,
					name[strings.LastIndex(name, ":")+1:]))
			}
		}
	}
	return append(append(warnings, valueDoubts(subject+": header", m.Headers)...), valueDoubts(subject+": query", m.Query)...)
}

func valueDoubts(subject string, fields []reading.Field) (warnings []string) {
	for _, field := range fields {
		for _, value := range field.Values {
			if !strings.Contains(value, "/") && (strings.HasPrefix(value, "*") || strings.HasSuffix(value, "*")) {
				warnings = append(warnings, fmt.Sprintf("%s %s: %q is only that value: values are not patterns, and only a single * means any",
					subject, field.Name, value))
			}
		}
	}
	return warnings
}

// slashDoubts returns a warning if a path of a rule matches only one page, but the file has other paths below this
// page.
func (f *File) slashDoubts(r *Rule) (warnings []string) {
	for _, p := range r.Match.Paths {
		page := p.String()
		if p.IsText() || strings.HasSuffix(page, "/") || strings.Contains(page, "{") {
			continue
		}
		hasPathBelow := func(m *reading.Match) bool {
			return slices.ContainsFunc(m.Paths, func(other reading.Path) bool { return strings.HasPrefix(other.String(), page+"/") })
		}
		switch {
		case hasPathBelow(&r.Match):
		case slices.ContainsFunc(f.Rules, func(other Rule) bool { return hasPathBelow(&other.Match) }),
			slices.ContainsFunc(f.Routes, func(other Route) bool { return hasPathBelow(&other.Match) }):
			warnings = append(warnings, fmt.Sprintf("rule %s: path: %s is only that page, and the file has paths below it: "+
				"write %s/ for all paths that begin with it, or %s/{$} for the page", r.Name, page, page, page))
		}
	}
	return warnings
}

// unlimitedDoubts returns a warning about an unlimited rule if other rules may still limit its requests. The warning
// names these rules.
func (f *File) unlimitedDoubts(unlimited *Rule) []string {
	var otherRules []string
	for i := range f.Rules {
		r := &f.Rules[i]
		if r.Constant != Unlimited && mayOverlap(&r.Match, &unlimited.Match) && !slices.ContainsFunc(r.Match.Not, func(m reading.Match) bool {
			return covers(&m, &unlimited.Match)
		}) {
			otherRules = append(otherRules, r.Name)
		}
	}
	if otherRules == nil {
		return nil
	}
	return []string{fmt.Sprintf("rule %s: rate: unlimited: it does not turn off other rules, and %s may limit the "+
		"same requests: write what it matches under exempt, or under not of the other rule", unlimited.Name, strings.Join(otherRules, ", "))}
}

// mayOverlap reports whether a request could meet both matches. It returns false only if this is obviously impossible.
func mayOverlap(a, b *reading.Match) bool {
	areDisjoint := func(a, b []string) bool {
		return len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
	}
	if areDisjoint(a.Methods, b.Methods) || areDisjoint(a.Hosts, b.Hosts) {
		return false
	}
	if len(a.Paths) == 0 || len(b.Paths) == 0 {
		return true
	}
	for _, p := range a.Paths {
		for _, q := range b.Paths {
			if mayBeginLike(p, q) || mayBeginLike(q, p) {
				return true
			}
		}
	}
	return false
}

// mayBeginLike reports whether the pattern p begins with the pattern q, so that paths of p may be below q. It compares
// only the text before the first { of each pattern. If p or q is not a pattern, it returns true.
func mayBeginLike(p, q reading.Path) bool {
	if p.IsText() || q.IsText() {
		return true
	}
	literalPrefix := func(p reading.Path) string {
		s, _, _ := strings.Cut(p.String(), "{")
		return strings.ToLower(strings.TrimSuffix(s, "/"))
	}
	return strings.HasPrefix(literalPrefix(p), literalPrefix(q))
}

// covers reports whether every request that meets the match inner obviously meets the match outer, too.
func covers(outer, inner *reading.Match) bool {
	isSubset := func(narrow, wide []string) bool {
		return len(wide) == 0 || len(narrow) > 0 && !slices.ContainsFunc(narrow, func(s string) bool { return !slices.Contains(wide, s) })
	}
	if !isSubset(inner.Hosts, outer.Hosts) || !isSubset(inner.Methods, outer.Methods) || len(outer.Query)+len(outer.Not) > 0 {
		return false
	}
	for _, field := range outer.Headers {
		if !slices.ContainsFunc(inner.Headers, func(other reading.Field) bool {
			return other.Name == field.Name && (len(field.Values) == 0 || len(other.Values) > 0 && isSubset(other.Values, field.Values))
		}) {
			return false
		}
	}
	if len(outer.Clients) > 0 && !slices.Equal(outer.Clients, inner.Clients) {
		return false
	}
	if len(outer.Paths) == 0 {
		return true
	}
	return len(inner.Paths) > 0 && !slices.ContainsFunc(inner.Paths, func(narrow reading.Path) bool {
		return !slices.ContainsFunc(outer.Paths, func(wide reading.Path) bool {
			w, n := wide.String(), narrow.String()
			return w == n || !wide.IsText() && !narrow.IsText() && strings.HasSuffix(w, "/") && !strings.Contains(w, "{") && strings.HasPrefix(n, w)
		})
	})
}

func returnsAll(s Statuses) bool {
	for status := http.StatusOK; status < 600; status++ {
		if !s.Contains(status) {
			return false
		}
	}
	return true
}

// inventedKeyDoubts returns a warning if the keys of all rules are values that clients can choose.
func (f *File) inventedKeyDoubts(upstreams []*Upstream) []string {
	var keys []string
	for i := range f.Rules {
		r := &f.Rules[i]
		if !r.Counts() || r.Shadow {
			continue
		}
		isBounded := true
		if r.Quota.refusesOtherKeys(r.Key) {
			return nil // only values in the rule's file of limits have a bucket
		}
		for _, part := range r.Key {
			switch s := part[0]; s.Kind {
			case SourceHeader, SourceCookie, SourceQuery:
				isBounded = false
				if !s.isDropped(upstreams) && !slices.Contains(keys, s.String()) {
					keys = append(keys, s.String()) // droppedKeyWarnings has the warnings about dropped headers
				}
			case SourceIP, SourcePath, SourceMethod, SourceHost, SourceGlobal, SourceNone:
			}
		}
		if isBounded {
			return nil
		}
	}
	if keys == nil {
		return nil
	}
	return []string{fmt.Sprintf("key: a client that makes up values of %s has a new bucket for each, and no other "+
		"rule limits it: add a rule with key: ip, or pass weir only requests whose %s were "+
		"checked", strings.Join(keys, " and "), strings.Join(keys, " and "))}
}

const memoryWarningBytes = 32 << 30

// MemoryWarning returns a warning if the limits may need much memory, or "". If a machine has less memory than the
// limits need, a server on it refuses the file.
func (f *File) MemoryWarning() string {
	total, largestBytes := uint64(0), uint64(0)
	var largest *Rule
	for i := range f.Rules {
		r := &f.Rules[i]
		bytes, err := r.Memory()
		if err != nil || !r.Counts() {
			continue
		}
		if total += bytes; bytes > largestBytes {
			largestBytes, largest = bytes, r
		}
	}
	if total <= memoryWarningBytes {
		return ""
	}
	advice := "lower max_keys"
	if spec.Logs(largest.Policy.Algorithm()) {
		advice += ", or use algorithm: sliding-window"
	}
	return fmt.Sprintf("memory: the limits take %s when their tables are full, %s of it for rule %s: %s", humanize.IBytes(total),
		humanize.IBytes(largestBytes), largest.Name, advice)
}
