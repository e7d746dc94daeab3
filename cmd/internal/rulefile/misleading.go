package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/fieldname"
)

// isDropped reports whether a client's field with this canonical name is not passed on.
func isDropped(name string) bool {
	return !fieldname.IsPlain(name) || fieldname.Misleads(name) || name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-")
}

// isDropped reports whether the source is a header that no upstream gets.
func (s Source) isDropped(upstreams []*Upstream) bool {
	return s.Kind == SourceHeader && isDropped(s.Name) &&
		!slices.ContainsFunc(upstreams, func(u *Upstream) bool { return slices.Contains(u.PassHeaders, s.Name) })
}

// droppedKeyWarnings returns warnings about rules whose key is a header that no upstream gets. A client can then write
// any value into it.
func (f *File) droppedKeyWarnings(upstreams []*Upstream) (warnings []string) {
	for i := range f.Rules {
		for _, part := range f.Rules[i].Key {
			for _, s := range part {
				if s.isDropped(upstreams) {
					warnings = append(warnings, fmt.Sprintf("rule %s: key: header:%s: any client can send it, each value is a "+
						"bucket of its own, and upstreams do not get it: for addresses write ip, with "+
						"trusted_proxies and client_ip", f.Rules[i].Name, s.Name))
				}
			}
		}
	}
	return warnings
}
