package chart

import (
	"regexp"
	"strings"
)

var (
	declaration = regexp.MustCompile(`--(\w+):(#\w+)`)
	variable    = regexp.MustCompile(`var\(--(\w+)\)`)
	rule        = regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`)
)

var colours = []Colour{Ink, Blue, Orange, Green, Grey, Ochre, Purple}

// flatStyle returns the style sheet with values instead of variables, because many SVG renderers draw a variable as
// black. The rules with the light colors come first. The rules for readers who prefer dark pages follow.
func flatStyle() string {
	_, rest, _ := strings.Cut(style, "@media")
	scheme, rules, _ := strings.Cut(rest, "\n}\n")
	light, _, _ := strings.Cut(style, "@media")
	rules += ".chart .back { fill:var(--back) }\n"
	return coloredRules(rules, light, true) + "@media (prefers-color-scheme: dark) {\n" + coloredRules(rules, scheme, false) + "}\n"
}

// coloredRules returns the rules with the colors that the text scheme declares. If includePlain is set, it also returns
// the rules without a color. A rule that uses the color of its mark becomes one rule for each color.
func coloredRules(rules, scheme string, includePlain bool) string {
	values := map[string]string{}
	for _, m := range declaration.FindAllStringSubmatch(scheme, -1) {
		values[m[1]] = m[2]
	}
	var b strings.Builder
	writeRule := func(selectors, body, suffix string) {
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
				writeRule(m[1], m[2], "."+string(c))
			}
		case includePlain || strings.Contains(m[2], "var("):
			writeRule(m[1], m[2], "")
		}
	}
	return b.String()
}
