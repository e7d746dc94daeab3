package chart

import (
	"regexp"
	"strings"
)

var (
	declared = regexp.MustCompile(`--(\w+):(#\w+)`)
	variable = regexp.MustCompile(`var\(--(\w+)\)`)
	rule     = regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`)
)

var colours = []Colour{Ink, Blue, Orange, Green, Grey, Ochre, Purple}

// flat returns the style sheet with values instead of variables, because many SVG renderers draw a variable as black.
// The rules with the light colors come first. The rules for readers who prefer dark pages follow.
func flat() string {
	_, rest, _ := strings.Cut(style, "@media")
	scheme, rules, _ := strings.Cut(rest, "\n}\n")
	light, _, _ := strings.Cut(style, "@media")
	rules += ".chart .back { fill:var(--back) }\n"
	return colored(rules, light, true) + "@media (prefers-color-scheme: dark) {\n" + colored(rules, scheme, false) + "}\n"
}

// colored returns the rules with the colors that the text scheme declares. If the flag all is set, it also returns the
// rules without a color. A rule that uses the color of its mark becomes one rule for each color.
func colored(rules, scheme string, all bool) string {
	values := map[string]string{}
	for _, m := range declared.FindAllStringSubmatch(scheme, -1) {
		values[m[1]] = m[2]
	}
	var b strings.Builder
	put := func(selectors, body, suffix string) {
		list := strings.Split(strings.TrimSpace(selectors), ",")
		for i := range list {
			list[i] = strings.TrimSpace(list[i]) + suffix
		}
		b.WriteString(strings.Join(list, ", ") + " {" + variable.ReplaceAllStringFunc(body, func(v string) string {
			return values[variable.FindStringSubmatch(v)[1]]
		}) + "}\n")
	}
	for _, m := range rule.FindAllStringSubmatch(rules, -1) {
		switch {
		case strings.Contains(m[2], "--colour:"): // declares the color of a mark
		case strings.Contains(m[2], "var(--colour)"):
			for _, c := range colours {
				values["colour"] = values[string(c)]
				put(m[1], m[2], "."+string(c))
			}
		case all || strings.Contains(m[2], "var("):
			put(m[1], m[2], "")
		}
	}
	return b.String()
}
