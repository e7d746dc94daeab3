// Package yamlfile reads the nodes of a YAML file and collects the mistakes, each with its place. It does not know any
// keys: package rulefile uses it for rule files, and package envoy/config uses it for the files of Envoy's service.
package yamlfile

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// MaxErrors is the number of mistakes after which reading stops. A file with more mistakes is probably of another kind.
const MaxErrors = 100

// A Walker notes the mistakes in a file, and bounds the number of values that are read. A value counts once more for
// each alias of it. So a short file cannot expand to an endless one.
type Walker struct {
	File   string
	Errors Errors

	nodes int
	full  bool
}

// variable matches references to environment variables, which other programs would replace.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*[^}]*\}`)

// Note returns an Error with the place of n.
func (w *Walker) Note(n *yaml.Node, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	if Target(n).Kind == yaml.ScalarNode && variable.MatchString(Target(n).Value) {
		message += "; variables in the file are not replaced: insert the value, for example with envsubst"
	}
	return &Error{w.File, n.Line, n.Column, message}
}

// Fail notes a mistake at the place of n, unless the walk has ended.
func (w *Walker) Fail(n *yaml.Node, format string, args ...any) {
	if w.full {
		return
	}
	w.Errors = append(w.Errors, w.Note(n, format, args...))
	w.full = len(w.Errors) >= MaxErrors
}

// IsFull reports whether the walk has ended because there were too many mistakes or values.
func (w *Walker) IsFull() bool { return w.full }

// Visit counts a value and returns it. For an alias, it returns the node that the alias names. If there are more than
// maxValues values, the walk ends with a mistake. Its text is tooMany, a format with one verb for maxValues. After the
// end of the walk, Visit returns nil.
func (w *Walker) Visit(n *yaml.Node, maxValues int, tooMany string) *yaml.Node {
	if w.full {
		return nil
	}
	if w.nodes++; w.nodes > maxValues {
		w.Fail(n, tooMany, maxValues)
		w.full = true
		return nil
	}
	return Target(n)
}

// Target returns the node that an alias names. It returns any other node unchanged.
func Target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// IsNull reports whether a node is null or missing.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// KindOf returns the kind of a node in words, for messages.
func KindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if IsNull(n) {
			return "nothing"
		}
		return Quote(n.Value)
	}
	return "something else"
}

// Quote returns a value for a message, escaped and shortened.
func Quote(s string) string {
	const maxLen = 60
	if len(s) > maxLen {
		return strconv.Quote(s[:maxLen]) + "..."
	}
	return strconv.Quote(s)
}
