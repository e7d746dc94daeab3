package conformance

import (
	"fmt"
	"slices"
	"strings"
)

const introduction = `# What every front does

A front is one way to put weir before a server. One suite of cases runs against every front, so that a request, a limit
and a reload mean the same everywhere. Each row is a case, and ✓ means that the front passes it. "Not yet" names the step
that will close the gap. "No" has a letter for the reason: the protocol cannot do it, or the front does something else on
purpose. A new failure fails the tests. A gap that is closed and still listed fails them, too. For gRPC and Connect the
cases of a store run against package rpclimit itself, without the frameworks.

The cases are in [internal/conformance](../internal/conformance/doc.go), and the gaps are in
[known.txt](../internal/conformance/known.txt). This page is generated from both: %s.
`

// Page returns the text of docs/conformance.md. The argument command is the command that writes the file.
func Page(command string) (string, error) {
	lists, err := parseKnown(knownText)
	if err != nil {
		return "", err
	}
	p := &page{lists: lists}
	fmt.Fprintf(p, introduction, command)
	feature := ""
	for _, k := range Cases() {
		if f := k.Feature(); f != feature {
			feature = f
			fmt.Fprintf(p, "\n## %s\n\n| case | %s |\n|---|%s\n", strings.ToUpper(f[:1])+f[1:],
				strings.Join(Fronts, " | "), strings.Repeat("---|", len(Fronts)))
		}
		p.row(k)
	}
	p.writeReasons()
	return p.String(), nil
}

type page struct {
	strings.Builder
	lists   map[string]map[string]gap
	reasons []string // the reasons of protocols
	gaps    []string // what fronts do not do yet, in the order of the page
}

func (p *page) row(k *Case) {
	fmt.Fprintf(p, "| %s |", k.Expects)
	for _, front := range Fronts {
		switch gap := p.lists[front][k.Name]; {
		case gap.step == cannot || gap.step == differs:
			fmt.Fprintf(p, " no: %s |", p.letter(gap.reason))
		case gap.step != "":
			fmt.Fprintf(p, " not yet: %s |", gap.step)
			if line := gap.step + ": " + gap.reason; !slices.Contains(p.gaps, line) {
				p.gaps = append(p.gaps, line)
			}
		default:
			p.WriteString(" ✓ |")
		}
	}
	p.WriteString("\n")
}

// letter returns the letters that stand for a reason on the page.
func (p *page) letter(reason string) string {
	i := slices.Index(p.reasons, reason)
	if i < 0 {
		i = len(p.reasons)
		p.reasons = append(p.reasons, reason)
	}
	return letters(i)
}

// letters returns the i-th name for a reason: a to z, then aa, ab and so on.
func letters(i int) string {
	last := string(rune('a' + i%26))
	if i < 26 {
		return last
	}
	return letters(i/26-1) + last
}

func (p *page) writeReasons() {
	if len(p.reasons) > 0 {
		p.WriteString("\n## Why not\n\n")
		for i, reason := range p.reasons {
			fmt.Fprintf(p, "- %s: %s\n", letters(i), reason)
		}
	}
	if len(p.gaps) > 0 {
		p.WriteString("\n## Not yet\n\n")
		slices.Sort(p.gaps)
		for _, gap := range p.gaps {
			fmt.Fprintf(p, "- %s\n", gap)
		}
	}
}
