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
func (f *File) doubts(upstreams []*Upstream) (all []string) {
	for i := range f.Exempt {
		all = append(all, exceptionDoubts("exempt", &f.Exempt[i])...)
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		where := "rule " + r.Name
		for j := range r.Match.Not {
			all = append(all, exceptionDoubts(where+": not", &r.Match.Not[j])...)
		}
		all = append(all, literalDoubts(where+": match", &r.Match)...)
		all = append(all, f.slashDoubts(r)...)
		if r.Constant == Unlimited && r.Tiers == nil && r.Quota == nil {
			all = append(all, f.liftsNothing(r)...)
		}
		if len(r.Refund) > 0 && returnsAll(r.Refund) {
			all = append(all, where+": refund_status: every answer has one of these, so every request gets its "+
				"tokens back and the rule limits nothing: leave out the statuses that should count")
		}
	}
	for i := range f.Routes {
		all = append(all, literalDoubts(fmt.Sprintf("route %d", i+1), &f.Routes[i].Match)...)
		for j := range i {
			if covers(&f.Routes[j].Match, &f.Routes[i].Match) {
				all = append(all, fmt.Sprintf("route %d: no request reaches it, because route %d, for %s, gets all "+
					"of them: move it before that route",
					i+1, j+1, f.Routes[j].Match))
				break
			}
		}
	}
	return append(all, f.inventedKeys(upstreams)...)
}

// exceptionDoubts returns warnings about an exception, which applies to one rule or to all rules.
func exceptionDoubts(where string, m *reading.Match) []string {
	all := literalDoubts(where, m)
	onlyPaths := len(m.Hosts)+len(m.Methods)+len(m.Headers)+len(m.Query)+len(m.Clients) == 0
	if onlyPaths && slices.ContainsFunc(m.Paths, isEveryPath) {
		all = append(all, where+": path: / is every path, so no request is limited: write /{$} for that page alone")
	}
	if len(m.Clients) > 0 {
		return all
	}
	for _, field := range m.Headers {
		all = append(all, fmt.Sprintf("%s: header %s: any client can send it to avoid the limit: add the client it "+
			"comes from, such as client: 10.0.0.0/8", where, field.Name))
	}
	for _, field := range m.Query {
		all = append(all, fmt.Sprintf("%s: query %s: any client can send it to avoid the limit: add the client it "+
			"comes from, such as client: 10.0.0.0/8", where, field.Name))
	}
	return all
}

func isEveryPath(p reading.Path) bool { return p.String() == "/" || p.String() == "prefix /" }

// literalDoubts returns warnings about parts of a path that are patterns in other programs. In a rule file, they are
// literal text.
func literalDoubts(where string, m *reading.Match) (all []string) {
	for _, p := range m.Paths {
		if p.IsText() {
			continue
		}
		for _, segment := range strings.Split(p.String(), "/") {
			if name, ok := strings.CutPrefix(segment, ":"); ok && name != "" {
				all = append(all, fmt.Sprintf("%s: path: %s is only that text: write {%s} for any segment", where, p, name))
			} else if name, ok := strings.CutPrefix(segment, "<"); ok && strings.HasSuffix(name, ">") {
				_, name, _ = strings.Cut(":"+strings.TrimSuffix(name, ">"), ":")
				all = append(all, fmt.Sprintf("%s: path: %s is only that text: write {%s} for any segment", where, p,
					name[strings.LastIndex(name, ":")+1:]))
			}
		}
	}
	return append(append(all, valueDoubts(where+": header", m.Headers)...), valueDoubts(where+": query", m.Query)...)
}

func valueDoubts(where string, fields []reading.Field) (all []string) {
	for _, field := range fields {
		for _, value := range field.Values {
			if !strings.Contains(value, "/") && (strings.HasPrefix(value, "*") || strings.HasSuffix(value, "*")) {
				all = append(all, fmt.Sprintf("%s %s: %q is only that value: values are not patterns, and only a single * means any",
					where, field.Name, value))
			}
		}
	}
	return all
}

// slashDoubts returns a warning if a path of a rule matches only one page, but the file has other paths below this
// page.
func (f *File) slashDoubts(r *Rule) (all []string) {
	for _, p := range r.Match.Paths {
		page := p.String()
		if p.IsText() || strings.HasSuffix(page, "/") || strings.Contains(page, "{") {
			continue
		}
		below := func(m *reading.Match) bool {
			return slices.ContainsFunc(m.Paths, func(other reading.Path) bool { return strings.HasPrefix(other.String(), page+"/") })
		}
		switch {
		case below(&r.Match):
		case slices.ContainsFunc(f.Rules, func(other Rule) bool { return below(&other.Match) }),
			slices.ContainsFunc(f.Routes, func(other Route) bool { return below(&other.Match) }):
			all = append(all, fmt.Sprintf("rule %s: path: %s is only that page, and the file has paths below it: "+
				"write %s/ for all paths that begin with it, or %s/{$} for the page", r.Name, page, page, page))
		}
	}
	return all
}

// liftsNothing returns a warning about an unlimited rule if other rules may still limit its requests. The warning names
// these rules.
func (f *File) liftsNothing(unlimited *Rule) []string {
	var others []string
	for i := range f.Rules {
		r := &f.Rules[i]
		if r.Constant != Unlimited && mayOverlap(&r.Match, &unlimited.Match) && !slices.ContainsFunc(r.Match.Not, func(m reading.Match) bool {
			return covers(&m, &unlimited.Match)
		}) {
			others = append(others, r.Name)
		}
	}
	if others == nil {
		return nil
	}
	return []string{fmt.Sprintf("rule %s: rate: unlimited: it does not turn off other rules, and %s may limit the "+
		"same requests: write what it matches under exempt, or under not of the other rule", unlimited.Name, strings.Join(others, ", "))}
}

// mayOverlap reports whether a request could meet both matches. It returns false only if this is obviously impossible.
func mayOverlap(a, b *reading.Match) bool {
	apart := func(a, b []string) bool {
		return len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
	}
	if apart(a.Methods, b.Methods) || apart(a.Hosts, b.Hosts) {
		return false
	}
	if len(a.Paths) == 0 || len(b.Paths) == 0 {
		return true
	}
	for _, p := range a.Paths {
		for _, q := range b.Paths {
			if begins(p, q) || begins(q, p) {
				return true
			}
		}
	}
	return false
}

// begins reports whether the pattern p begins like the pattern q, so that its paths may be below q. It compares only
// the text up to the first { of each pattern. If p or q is not a pattern, begins returns true.
func begins(p, q reading.Path) bool {
	if p.IsText() || q.IsText() {
		return true
	}
	plain := func(p reading.Path) string {
		s, _, _ := strings.Cut(p.String(), "{")
		return strings.ToLower(strings.TrimSuffix(s, "/"))
	}
	return strings.HasPrefix(plain(p), plain(q))
}

// covers reports whether the first match obviously covers the second match. Then every request that meets the second
// match also meets the first.
func covers(m, of *reading.Match) bool {
	within := func(narrow, wide []string) bool {
		return len(wide) == 0 || len(narrow) > 0 && !slices.ContainsFunc(narrow, func(s string) bool { return !slices.Contains(wide, s) })
	}
	if !within(of.Hosts, m.Hosts) || !within(of.Methods, m.Methods) || len(m.Query)+len(m.Not) > 0 {
		return false
	}
	for _, field := range m.Headers {
		if !slices.ContainsFunc(of.Headers, func(f reading.Field) bool {
			return f.Name == field.Name && (len(field.Values) == 0 || len(f.Values) > 0 && within(f.Values, field.Values))
		}) {
			return false
		}
	}
	if len(m.Clients) > 0 && !slices.Equal(m.Clients, of.Clients) {
		return false
	}
	if len(m.Paths) == 0 {
		return true
	}
	return len(of.Paths) > 0 && !slices.ContainsFunc(of.Paths, func(narrow reading.Path) bool {
		return !slices.ContainsFunc(m.Paths, func(wide reading.Path) bool {
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

// inventedKeys returns a warning if the keys of all rules are values that clients can choose.
func (f *File) inventedKeys(upstreams []*Upstream) []string {
	var keys []string
	for i := range f.Rules {
		r := &f.Rules[i]
		if !r.Counts() || r.Shadow {
			continue
		}
		bounded := true
		if r.Quota.refusesOthers(r.Key) {
			return nil // only values in the rule's file of limits have a bucket
		}
		for _, part := range r.Key {
			switch s := part[0]; s.Kind {
			case SourceHeader, SourceCookie, SourceQuery:
				bounded = false
				if !s.isDropped(upstreams) && !slices.Contains(keys, s.String()) {
					keys = append(keys, s.String()) // droppedKeys warns about dropped headers
				}
			case SourceIP, SourcePath, SourceMethod, SourceHost, SourceGlobal, SourceNone:
			}
		}
		if bounded {
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

const muchMemory = 32 << 30

// MemoryWarning returns a warning if the limits may need much memory, or "". If a machine has less memory than the
// limits need, a server on it refuses the file.
func (f *File) MemoryWarning() string {
	total, most := uint64(0), uint64(0)
	var largest *Rule
	for i := range f.Rules {
		r := &f.Rules[i]
		bytes, err := r.Memory()
		if err != nil || !r.Counts() {
			continue
		}
		if total += bytes; bytes > most {
			most, largest = bytes, r
		}
	}
	if total <= muchMemory {
		return ""
	}
	cure := "lower max_keys"
	if spec.Logs(largest.Policy.Algorithm()) {
		cure += ", or use algorithm: sliding-window"
	}
	return fmt.Sprintf("memory: the limits take %s when their tables are full, %s of it for rule %s: %s", humanize.IBytes(total),
		humanize.IBytes(most), largest.Name, cure)
}
