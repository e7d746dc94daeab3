package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// didYouMean returns `: did you mean "rate"?` if one of the known words is similar to the given word. Otherwise it
// returns a list of the known words.
func didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ": want " + oneOf(known)
}

// others has words that people write by mistake, and for each of them the word that they probably mean.
var others = map[string]string{
	"limit": "rate", "requests": "rate", "capacity": "burst", "dry_run": "shadow", "by": "key",
	"bind": "listen", "backend": "upstream", "proxy": "upstream", "timeout": "response_timeout", "port": "address",
}

// nearest returns the known word that differs from the given word in the fewest letters. It returns "" if more than a
// third of the letters differ, because the given word is then not a typo. Letters in another order count as a
// difference of one letter.
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

// oneOf returns the words of a choice in the form "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
