package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// didYouMean returns `: did you mean "rate"?` for a similar known word, and otherwise a list of the known words.
func didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ": want " + oneOf(known)
}

// The variable others maps words that people often write by mistake to the words that they probably mean.
var others = map[string]string{
	"limit": "rate", "requests": "rate", "capacity": "burst", "dry_run": "shadow", "by": "key",
	"bind": "listen", "backend": "upstream", "proxy": "upstream", "timeout": "response_timeout", "port": "address",
}

// nearest returns the known word that differs from a word in the fewest letters. Two swapped letters count as one. It
// returns "" if more than a third of the letters differ, because the word is then not a misspelling.
func nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	if other := others[word]; slices.Contains(known, other) {
		return other
	}
	best, fewest := "", 1+max(1, len(word)/3)
	for _, k := range known {
		if d := changes(simple(word), simple(k)); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

func simple(word string) string { return strings.ReplaceAll(strings.ToLower(word), "_", "-") }

func changes(a, b string) int {
	d := levenshtein.ComputeDistance(a, b)
	if d > 1 && slices.Equal(letters(a), letters(b)) {
		return 1
	}
	return d
}

func letters(word string) []byte {
	all := []byte(word)
	slices.Sort(all)
	return all
}

func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
