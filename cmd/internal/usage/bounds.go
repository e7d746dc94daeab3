package usage

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds says where in a request a server reads bounds for its answer. A bound at another place has no effect. For an
// unknown server, Bounds is nil. Bounds are safe for concurrent use.
type Bounds struct {
	Object []string   // spellings of the object that contains the bounds; none for the body itself
	Fields [][]string // spellings of each field; the first field is used for a new bound
	Batch  bool       // the body is a batch for Anthropic's API; its items have their bounds in params
}

const maxBounds = 2

// itemBounds has the places of bounds in an item of a batch.
var itemBounds = &Bounds{Object: []string{"params"}, Fields: [][]string{{"max_tokens"}}}

// boundPaths has the paths at which a bound of an answer may be, over all servers. They are in lower case, because some
// servers ignore case.
var boundPaths = []string{
	"max_tokens", "max_completion_tokens", "max_output_tokens", "generationconfig.maxoutputtokens",
	"generation_config.max_output_tokens", "generationconfig.max_output_tokens", "generation_config.maxoutputtokens",
	"inferenceconfig.maxtokens", "options.num_predict", "max_new_tokens", "parameters.max_new_tokens", "num_predict",
	"n_predict", "max_tokens_to_sample",
}

// IsBound reports whether a path may be that of a bound at some server. The path must be in lower case ([Fold]).
func IsBound(path string) bool { return slices.Contains(boundPaths, path) }

// IsObject reports whether the server reads its bounds from the object with this key. The key must be in lower case
// ([Fold]).
func (b *Bounds) IsObject(key string) bool {
	return b != nil && slices.ContainsFunc(b.Object, func(o string) bool { return Fold(o) == key })
}

// Find returns the index of the field with a path, or -1. It ignores case. The result exact says whether the path has
// exactly the spelling of the field.
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

// fold changes a key to lower case in place, as servers that ignore case do. The long s becomes s, and the Kelvin sign
// becomes k.
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

// Fold returns a key of an object in lower case. Some servers compare keys in this form.
func Fold(key string) string { return string(fold([]byte(key))) }

// A tally counts the bounds of a body, or of an item of a batch. A field counts only if it is spelled as the server
// spells it. If a field is repeated in any spelling, it counts only if each of its values is a bound.
type tally struct {
	largest uint64 // the largest value that looks like a bound
	fields  [maxBounds]struct {
		found, invalid bool
		largest        uint64
	}
	objects int  // number of objects for bounds; a server may use any of them
	invalid bool // one value is neither a bound nor null, and a server may ignore it
}

// note notes a value. Its path may be that of a bound.
func (t *tally) note(b *Bounds, path string, k kind, text []byte) {
	n := Bound(text)
	t.largest = max(t.largest, n)
	isNull := k == kindLiteral && string(text) == "null"
	if k != kindNumber || n == 0 || !jsontext.Value(text).IsValid() { // 010 is a number, but not in JSON
		t.invalid = t.invalid || !isNull
		n = 0
	}
	field, exact := b.Find(path)
	if field < 0 {
		return
	}
	f := &t.fields[field]
	f.found, f.invalid, f.largest = f.found || exact, f.invalid || n == 0, max(f.largest, n)
}

// bound returns the largest bound that the server obeys, or 0.
func (t *tally) bound() (largest uint64) {
	if t.invalid || t.objects > 1 {
		return 0
	}
	for _, f := range t.fields {
		if f.found && !f.invalid {
			largest = max(largest, f.largest)
		}
	}
	return largest
}

// output returns how many tokens the answer may have. This is the bound that the server obeys, or defaultOutput if
// there is no bound. If another value only looks like a bound but is larger, output returns this value.
func (t *tally) output(bound, defaultOutput uint64) uint64 {
	if bound == 0 {
		bound = defaultOutput
	}
	return max(bound, t.largest)
}
