package conformance

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fronts are the names of all fronts, in the order of the page.
var Fronts = []string{"httplimit", "gRPC", "Connect", "caddylimit", "weir-envoy", "Redis door", "weir serve"}

//go:embed known.txt
var knownText string

// A gap is a line of known.txt: a case that a front does not pass.
type gap struct {
	step   string // the planned step that closes the gap, such as "3.4", or cannot or differs
	reason string // what goes wrong, or why the protocol cannot do it, or why the front differs
}

const (
	cannot  = "cannot"  // the protocol cannot express what the case needs
	differs = "differs" // the front does something else on purpose
)

// parseKnown reads known.txt. A line that starts with # is a comment. Any other line has four parts, separated by bars:
//
//  1. a case, or all cases of a feature ("wait/*")
//  2. the fronts that do not pass it
//  3. "cannot", "differs", or the step that closes the gap
//  4. what is wrong
func parseKnown(text string) (map[string]map[string]gap, error) {
	lists := map[string]map[string]gap{}
	for _, f := range Fronts {
		lists[f] = map[string]gap{}
	}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := addKnown(lists, line); err != nil {
			return nil, fmt.Errorf("known.txt:%d: %w", i+1, err)
		}
	}
	return lists, nil
}

func addKnown(lists map[string]map[string]gap, line string) error {
	fields := split(line, "|")
	if len(fields) != 4 || slices.Contains(fields, "") {
		return errors.New("want case | fronts | step, cannot or differs | what")
	}
	var names []string
	for _, k := range Cases() {
		if fields[0] == k.Name || fields[0] == k.Feature()+"/*" {
			names = append(names, k.Name)
		}
	}
	if names == nil {
		return fmt.Errorf("there is no case %q", fields[0])
	}
	for _, front := range split(fields[1], ",") {
		list, ok := lists[front]
		if !ok {
			return fmt.Errorf("%q is not a front", front)
		}
		for _, name := range names {
			if _, duplicate := list[name]; duplicate {
				return fmt.Errorf("%s is there twice for %s", name, front)
			}
			list[name] = gap{step: fields[2], reason: fields[3]}
		}
	}
	return nil
}

func split(text, separator string) []string {
	parts := strings.Split(text, separator)
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func gapsOf(front string) (map[string]gap, error) {
	lists, err := parseKnown(knownText)
	if err != nil {
		return nil, err
	}
	if lists[front] == nil {
		return nil, fmt.Errorf("conformance: front %q: want one of %v", front, Fronts)
	}
	return lists[front], nil
}

// judge returns what is wrong with the result of a case, or "" if the result is as the list says.
func (k gap) judge(err error) string {
	switch {
	case k == gap{} && err == nil:
		return ""
	case k == gap{}:
		return fmt.Sprintf("not on the list: %v", err)
	case err == nil:
		return "it is on the list and passes: take it off known.txt"
	case k.step == cannot && !errors.Is(err, ErrUnsupported):
		return fmt.Sprintf("the list says that the protocol cannot, but it is something else: %v", err)
	}
	return ""
}
