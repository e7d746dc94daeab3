package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// didYouMean returns `: did you mean "rate"?` if one of the words is similar, and otherwise a list of the words.
func didYouMean(word string, words []string) string {
	if suggestion := nearest(word, words); suggestion != "" {
		return fmt.Sprintf(": did you mean %q?", suggestion)
	}
	return ": want " + joinOr(words)
}

// synonyms maps words that people often write by mistake to the words that they probably mean.
var synonyms = map[string]string{
	"limit": "rate", "requests": "rate", "capacity": "burst", "dry_run": "shadow", "by": "key",
	"bind": "listen", "backend": "upstream", "proxy": "upstream", "timeout": "response_timeout", "port": "address",
}

// nearest returns the element of words that differs from word in the fewest letters. Two swapped letters count as one.
// It returns "" if more than a third of the letters differ, because word is then not a misspelling.
func nearest(word string, words []string) string {
	if len(word) > 64 {
		return ""
	}
	if suggestion := synonyms[word]; slices.Contains(words, suggestion) {
		return suggestion
	}
	best, minDistance := "", 1+max(1, len(word)/3)
	for _, candidate := range words {
		if d := editDistance(normalize(word), normalize(candidate)); d < minDistance {
			best, minDistance = candidate, d
		}
	}
	return best
}

func normalize(word string) string { return strings.ReplaceAll(strings.ToLower(word), "_", "-") }

func editDistance(a, b string) int {
	d := levenshtein.ComputeDistance(a, b)
	if d > 1 && slices.Equal(sortedLetters(a), sortedLetters(b)) {
		return 1
	}
	return d
}

func sortedLetters(word string) []byte {
	letters := []byte(word)
	slices.Sort(letters)
	return letters
}

func joinOr(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
