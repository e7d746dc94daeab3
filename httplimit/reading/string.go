package reading

import "strings"

// String returns the match as a text for people.
func (m Match) String() string {
	var parts []string
	add := func(label string, values []string) {
		if len(values) > 0 {
			parts = append(parts, label+" "+oneOf(values))
		}
	}
	add("method", m.Methods)
	add("host", m.Hosts)
	paths := make([]string, len(m.Paths))
	for i, p := range m.Paths {
		paths[i] = p.text
	}
	add("path", paths)
	if m.KeepCase && len(paths) > 0 {
		parts = append(parts, "upper and lower case as written")
	}
	if m.KeepType && len(paths) > 0 {
		parts = append(parts, "extensions as written")
	}
	fields := func(label string, list []Field) {
		for _, f := range list {
			if len(f.Values) == 0 {
				parts = append(parts, "any "+label+" "+f.Name)
			}
			add(label+" "+f.Name+":", f.Values)
		}
	}
	fields("header", m.Headers)
	fields("query", m.Query)
	clients := make([]string, len(m.Clients))
	for i, p := range m.Clients {
		clients[i] = p.String()
		if p.IsSingleIP() {
			clients[i] = p.Addr().String()
		}
	}
	add("client", clients)
	if len(parts) == 0 {
		parts = []string{"all requests"}
	}
	for _, exception := range m.Not {
		parts = append(parts, "but not "+exception.String())
	}
	return strings.Join(parts, ", ")
}

// oneOf lists words: "a, b or c".
func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
