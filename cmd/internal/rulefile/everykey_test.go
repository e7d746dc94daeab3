package rulefile

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// keyWalk finds which keys of the schema are used in files. A key is identified by its place in the schema.
type keyWalk struct {
	root map[string]any
	used map[string]bool
}

// newKeyWalk returns a keyWalk for the program's schema, and the places of all keys.
func newKeyWalk(t *testing.T) (w *keyWalk, all map[string]bool) {
	t.Helper()
	out, err := Schema()
	require.NoError(t, err)
	w, all = &keyWalk{used: map[string]bool{}}, map[string]bool{}
	require.NoError(t, json.Unmarshal(out, &w.root))
	w.list(w.root, "#", all)
	return w, all
}

// keyPlace removes the words of JSON Schema from a place. So a key has the same place in a list, in a single item, in a
// mapping and in its short form.
func keyPlace(place string) string {
	return strings.ReplaceAll(strings.TrimPrefix(schemaWords.ReplaceAllString(place, ""), "#/"), "/", ".")
}

var schemaWords = regexp.MustCompile(`/(properties|items|additionalProperties|definitions|(allOf|anyOf|oneOf)/\d+)\b`)

// list adds the places of all keys below a node.
func (w *keyWalk) list(node any, place string, all map[string]bool) {
	switch node := node.(type) {
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok && node["additionalProperties"] == false {
			for key := range properties {
				all[keyPlace(place)+"."+key] = true
			}
		}
		for name, inner := range node {
			w.list(inner, place+"/"+name, all)
		}
	case []any:
		for i, inner := range node {
			w.list(inner, fmt.Sprintf("%s/%d", place, i), all)
		}
	}
}

// file marks the keys that a file uses. It marks none if the file is not YAML.
func (w *keyWalk) file(text string) {
	var value any
	if yaml.Unmarshal([]byte(text), &value) == nil {
		w.visit(w.root, "#", value)
	}
}

// visit marks the keys that a value uses. If the schema permits alternatives, it tries all of them.
func (w *keyWalk) visit(node any, place string, value any) {
	of, ok := node.(map[string]any)
	if !ok {
		return
	}
	if ref, ok := of["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/definitions/")
		w.visit(w.root["definitions"].(map[string]any)[name], "#/definitions/"+name, value)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		ways, _ := of[word].([]any)
		for i, way := range ways {
			w.visit(way, fmt.Sprintf("%s/%s/%d", place, word, i), value)
		}
	}
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			w.visit(of["items"], place+"/items", item)
		}
	case map[string]any:
		properties, _ := of["properties"].(map[string]any)
		for key, inner := range value {
			if property, ok := properties[key]; ok {
				w.used[keyPlace(place)+"."+key] = true
				w.visit(property, place+"/properties/"+key, inner)
			} else {
				w.visit(of["additionalProperties"], place+"/additionalProperties", inner)
			}
		}
	}
}

func (w *keyWalk) unused(all map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(place string) bool { return w.used[place] })
}

// TestEveryKeyIsTried: the good files together use every key of the schema. For an unused key, no test would show that
// the decoder and the schema accept the same values. This test belongs to "A new key of the rule file" in CONTRIBUTING.
func TestEveryKeyIsTried(t *testing.T) {
	w, all := newKeyWalk(t)
	for _, text := range goodFiles(t) {
		w.file(text)
	}
	assert.Empty(t, w.unused(all), "add a file with a good value of each key to allKeys")
	assert.Greater(t, len(all), 150)
}
