package usage

import (
	"bytes"
	"slices"
	"strings"
)

// Bounds says where in a request a server reads bounds for its answer; a bound elsewhere has no effect. nil means an
// unknown server without such places. Bounds are safe for concurrent use.
type Bounds struct {
	Object []string   // spellings of the object that contains the bounds; none for the body itself
	Fields [][]string // spellings of each field; the first field is used for a new bound
	Batch  bool       // the body is a batch for Anthropic's API; its items have their bounds in params
}

const maxBounds = 2

// ofItem has the places of bounds in an item of a batch.
var ofItem = &Bounds{Object: []string{"params"}, Fields: [][]string{{"max_tokens"}}}

// caps has the paths at which a bound of an answer may be, in lower case because some servers ignore case.
var caps = []string{
	"max_tokens", "max_completion_tokens", "max_output_tokens", "generationconfig.maxoutputtokens",
	"generation_config.max_output_tokens", "generationconfig.max_output_tokens", "generation_config.maxoutputtokens",
	"inferenceconfig.maxtokens", "options.num_predict", "max_new_tokens", "parameters.max_new_tokens", "num_predict",
	"n_predict", "max_tokens_to_sample",
}

// IsBound reports whether a folded path may be the path of a bound at any server.
func IsBound(path string) bool { return slices.Contains(caps, path) }

// IsObject reports whether a folded key is the object from which the server reads its bounds, in any spelling.
func (b *Bounds) IsObject(key string) bool {
	return b != nil && slices.ContainsFunc(b.Object, func(o string) bool { return Fold(o) == key })
}

// Find returns the index of the field with the path, ignoring case, or -1. exact says whether the spelling is exact.
func (b *Bounds) Find(path string) (field int, exact bool) {
	if b == nil {
		return -1, false
	}
	object, name, inside := strings.Cut(path, ".")
	if !inside {
		object, name = "", path
	}
	if inside != (len(b.Object) > 0) || inside && !b.IsObject(Fold(object)) {
		return -1, false
	}
	for i, names := range b.Fields {
		if slices.ContainsFunc(names, func(n string) bool { return Fold(n) == Fold(name) }) {
			return i, (!inside || slices.Contains(b.Object, object)) && slices.Contains(names, name)
		}
	}
	return -1, false
}

// fold changes a key to lower case in place, as servers that ignore case do: the long s and the Kelvin sign become s
// and k.
func fold(key []byte) []byte {
	out := key[:0]
	for i := 0; i < len(key); i++ {
		switch c := key[i]; {
		case c >= 'A' && c <= 'Z':
			out = append(out, c|0x20)
		case bytes.HasPrefix(key[i:], []byte("\u017f")):
			out, i = append(out, 's'), i+1
		case bytes.HasPrefix(key[i:], []byte("\u212a")):
			out, i = append(out, 'k'), i+2
		default:
			out = append(out, c)
		}
	}
	return out
}

// Fold returns an object's key in lower case, because some servers compare keys in this form.
func Fold(key string) string { return string(fold([]byte(key))) }

// A tally counts the bounds of a body, or of an item of a batch. A field must be spelled as the server spells it. If it
// is repeated in any spelling, it counts only if each value is a bound.
type tally struct {
	largest uint64 // the largest value that looks like a bound
	fields  [maxBounds]struct {
		is, not bool
		largest uint64
	}
	objects int  // number of objects for bounds; a server may use any of them
	not     bool // one value is neither a bound nor null, and a server may ignore it
}

// note notes a value at a path that may be the path of a bound.
func (t *tally) note(b *Bounds, path string, k kind, text []byte) {
	n := Bound(text)
	t.largest = max(t.largest, n)
	isNull := k == isLiteral && string(text) == "null"
	if k != isNumber || n == 0 {
		t.not = t.not || !isNull
		n = 0
	}
	field, exact := b.Find(path)
	if field < 0 {
		return
	}
	f := &t.fields[field]
	f.is, f.not, f.largest = f.is || exact, f.not || n == 0, max(f.largest, n)
}

// bound returns the largest bound that the server obeys, or 0.
func (t *tally) bound() (most uint64) {
	if t.not || t.objects > 1 {
		return 0
	}
	for _, f := range t.fields {
		if f.is && !f.not {
			most = max(most, f.largest)
		}
	}
	return most
}

// output returns how long the answer may be: the bound that the server obeys, or the number standard if there is none.
// If a value that only looks like a bound is larger, output returns that value.
func (t *tally) output(bound, standard uint64) uint64 {
	if bound == 0 {
		bound = standard
	}
	return max(bound, t.largest)
}
