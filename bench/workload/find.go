package workload

import (
	"fmt"
	"strings"
	"time"
)

const (
	second = time.Second
	hour   = time.Hour
)

// Names returns the names of all rows.
func Names() []string {
	var names []string
	for _, r := range Rows() {
		names = append(names, r.Name)
	}
	return names
}

// Find returns the row or variant with that name. The error suggests a similar name and lists all names.
func Find(name string) (Row, error) {
	for _, r := range Rows() {
		for _, r := range append(r.Variants(), r) {
			if r.Name == name {
				return r, nil
			}
		}
	}
	return Row{}, fmt.Errorf("row %q: %swant one of %s", name, suggest(name), strings.Join(Names(), ", "))
}

// suggest suggests a row whose name begins or ends like the given name, or returns "".
func suggest(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, n := range Names() {
		head, tail, _ := strings.Cut(n, "-")
		if name != "" && (strings.HasPrefix(n, name) || strings.HasPrefix(name, head) ||
			tail != "" && strings.HasSuffix(name, tail)) {
			return fmt.Sprintf("did you mean %s? ", n)
		}
	}
	return ""
}
