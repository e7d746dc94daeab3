package rulefile

import (
	"encoding/json"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// A schema is a JSON Schema of draft 07, which editors support.
type schema map[string]any

// Schema returns the JSON Schema of rule files, with all keys, choices and ranges. Editors use it. It does not describe
// how keys depend on each other, such as a burst with a window. Only [Parse] finds such mistakes.
func Schema() ([]byte, error) {
	file := new(File).section()
	s := file.schema()
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["definitions"] = map[string]schema{
		"address": addressSchema, "mode": modeSchema, "duration": durationSchema,
		"upstream": mapping((*Upstream).section).schema(), "match": mapping(routeMatch).schema(), "exception": mapping(exception).schema(),
	}
	out, err := json.MarshalIndent(s, "", "  ")
	return append(out, '\n'), err
}

// schema returns the schema of a section. The section is a mapping with no other keys, or a value of its brief entry.
func (s *section) schema() schema {
	properties, needed := map[string]schema{}, []string{}
	for _, e := range s.entries {
		properties[e.name] = e.described()
		if e.missing != "" {
			needed = append(needed, e.name)
		}
	}
	all := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if s.help != "" {
		all["description"] = s.help
	}
	if len(needed) > 0 {
		all["required"] = needed
	}
	if s.anyOf != nil {
		ways := make([]schema, len(s.anyOf))
		for i, keys := range s.anyOf {
			ways[i] = schema{"required": keys}
		}
		all["anyOf"] = ways
	}
	if s.least > 0 {
		all["minProperties"] = s.least
	}
	if s.most > 0 {
		all["maxProperties"] = s.most
	}
	if s.open {
		all["patternProperties"] = schema{"^x-": true}
	}
	if s.brief != "" {
		return anyOf(s.entry(s.brief).schema(), all)
	}
	return all
}

// described returns the schema of the entry's values, with its help and default.
func (e *entry) described() schema {
	s := e.schema()
	if s["$ref"] != nil {
		s = schema{"allOf": []schema{s}} // keys next to a $ref are ignored
	} else {
		s = maps.Clone(s)
	}
	if text := plainHelp(e.help); text != "" {
		s["description"] = text
	}
	standard := e.standardText()
	if word := strings.Trim(e.instead, "`"); standard == "" && e.instead == "`"+word+"`" {
		standard = word
	}
	switch {
	case standard == "":
	case s["minimum"] != nil:
		s["default"], _ = strconv.Atoi(standard) // the standard value is a valid number
	case s["type"] == "boolean":
		s["default"] = standard == "true"
	case strings.HasPrefix(standard, "["):
	default:
		s["default"] = standard
	}
	return s
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plainHelp returns a help text without its links.
func plainHelp(text string) string { return link.ReplaceAllString(text, "$1") }

// The function many returns the schema of one value, or of a list with at least one value.
func many(item schema) schema {
	return anyOf(item, schema{"type": "array", "items": item, "minItems": 1})
}

func anyOf(all ...schema) schema { return schema{"anyOf": all} }

func pattern(description, p string) schema {
	s := schema{"type": "string", "pattern": p}
	if description != "" {
		s["description"] = description
	}
	return s
}

func ref(name string) schema { return schema{"$ref": "#/definitions/" + name} }

// textSchema is the schema of any single value, which is read as it is written.
var textSchema = schema{"type": []string{"string", "number", "boolean"}}

// durationSchema is the definition of durations. Only 0 needs no unit.
var durationSchema = func() schema {
	const part = `([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`
	return anyOf(pattern("A time with its unit: 500ms, 10s, 1h30m", `^(\+?(`+part+`)+|0)$`), schema{"const": 0})
}()

var addressSchema = pattern("host:port, or unix:/path", `^(unix:/.+|[^/]*:[0-9]{1,5})$`)

var modeSchema = anyOf(schema{"type": "integer", "minimum": 0o200, "maximum": 777},
	pattern("Octal digits: 660", "^(0o?)?[2367][0-7]{2}$"))

// referring returns a kind whose schema is only a reference to a definition.
func referring[V any](name string, k kind[V]) kind[V] {
	k.schema = func() schema { return ref(name) }
	return k
}

var (
	routeMatches = referring("match", mapping(routeMatch))
	exceptions   = referring("exception", mapping(exception))
)
