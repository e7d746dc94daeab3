package main

import (
	_ "embed"
	"strings"
)

//go:embed equivalent.txt
var equivalentText string

//go:embed open.txt
var openText string

//go:embed noticed.txt
var noticedText string

// The variable noticed has the keys of changes of package engine that a test has noticed.
var noticed = keys(noticedText)

func keys(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		if _, key, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			found[key] = true
		}
	}
	return found
}

// These maps have the reasons why changes survive, by the names of the changes.
var (
	equivalent = reasons(equivalentText)
	open       = reasons(openText)
)

// reasons returns the reason for each change in a list: one line or more, before the indented names of the changes.
func reasons(text string) map[string]string {
	found, reason, named := map[string]string{}, "", true
	for line := range strings.Lines(text) {
		name, isName := strings.CutPrefix(line, "\t")
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case isName:
			found[strings.TrimSpace(name)], named = reason, true
		case named: // the next reason begins
			reason, named = line, false
		default:
			reason += " " + line
		}
	}
	return found
}

func listed(m mutation) bool {
	_, explained := equivalent[m.name()]
	_, known := open[m.name()]
	return explained || known
}
