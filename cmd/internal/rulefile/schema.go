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

// schema returns the schema of a section: a mapping with no other keys, or a value of the shorthand entry.
func (s *section) schema() schema {
	properties, required := map[string]schema{}, []string{}
	for _, e := range s.entries {
		properties[e.name] = e.valueSchema()
		if e.requiredHint != "" {
			required = append(required, e.name)
		}
	}
	object := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if s.help != "" {
		object["description"] = s.help
	}
	if len(required) > 0 {
		object["required"] = required
	}
	if s.anyOf != nil {
		alternatives := make([]schema, len(s.anyOf))
		for i, keys := range s.anyOf {
			alternatives[i] = schema{"required": keys}
		}
		object["anyOf"] = alternatives
	}
	if s.minProperties > 0 {
		object["minProperties"] = s.minProperties
	}
	if s.maxProperties > 0 {
		object["maxProperties"] = s.maxProperties
	}
	if s.hasExtensions {
		object["patternProperties"] = schema{"^x-": true}
	}
	if s.shorthand != "" {
		return anyOf(s.entry(s.shorthand).schema(), object)
	}
	return object
}

// valueSchema returns the schema of the entry's values, with its help and default.
func (e *entry) valueSchema() schema {
	s := e.schema()
	if s["$ref"] != nil {
		s = schema{"allOf": []schema{s}} // keys next to a $ref are ignored
	} else {
		s = maps.Clone(s)
	}
	if text := plainHelp(e.help); text != "" {
		s["description"] = text
	}
	value := e.defaultText()
	if word := strings.Trim(e.defaultNote, "`"); value == "" && e.defaultNote == "`"+word+"`" {
		value = word
	}
	switch {
	case value == "":
	case s["minimum"] != nil:
		s["default"], _ = strconv.Atoi(value) // the default is a valid number
	case s["type"] == "boolean":
		s["default"] = value == "true"
	case strings.HasPrefix(value, "["):
	default:
		s["default"] = value
	}
	return s
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plainHelp returns a help text without its links.
func plainHelp(text string) string { return link.ReplaceAllString(text, "$1") }

// oneOrMore returns the schema of one value, or of a list with at least one value.
func oneOrMore(item schema) schema {
	return anyOf(item, schema{"type": "array", "items": item, "minItems": 1})
}

func anyOf(alternatives ...schema) schema { return schema{"anyOf": alternatives} }

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

// withReference returns a copy of the kind whose schema is only a reference to a definition.
func withReference[V any](name string, k kind[V]) kind[V] {
	k.schema = func() schema { return ref(name) }
	return k
}

var (
	routeMatches = withReference("match", mapping(routeMatch))
	exceptions   = withReference("exception", mapping(exception))
)
