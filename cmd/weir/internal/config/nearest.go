package config

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// didYouMean returns `: did you mean "rate"?` if one of the known words is near, and
// otherwise a list of them.
func didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ": want " + oneOf(known)
}

// nearest returns the known word with the fewest letters changed, or "" if that is more
// than a third of them, which is another word and not a slip.
func nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	simple := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	best, fewest := "", 1+max(1, len(word)/3)
	for _, k := range known {
		if d := levenshtein.ComputeDistance(simple(word), simple(k)); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// oneOf lists the words of a choice: "a, b or c".
func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
