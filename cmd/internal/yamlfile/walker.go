// Package yamlfile walks the nodes of a YAML file and collects the mistakes, each with its place. It knows no keys:
// package rulefile uses it for rule files, and package envoy/config for those of Envoy's service.
package yamlfile

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// MaxErrors is the number of mistakes at which reading stops. A file with more is probably not a file of this kind.
const MaxErrors = 100

// A Walker notes the mistakes of one file. It bounds the number of values that are read. A value counts as often as
// aliases name it, so that a short file cannot stand for an endless one.
type Walker struct {
	File   string
	Errors Errors

	nodes int
	full  bool
}

// variable matches references to environment variables, which other programs replace.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*[^}]*\}`)

// Note returns a message with the place of n.
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

// IsFull reports whether the walk has ended because of too many mistakes or values.
func (w *Walker) IsFull() bool { return w.full }

// Visit counts a value and resolves it. It returns nil if the walk has ended. The walk ends if there are more values
// than most. The mistake is then tooMany, a format with one verb for most.
func (w *Walker) Visit(n *yaml.Node, most int, tooMany string) *yaml.Node {
	if w.full {
		return nil
	}
	if w.nodes++; w.nodes > most {
		w.Fail(n, tooMany, most)
		w.full = true
		return nil
	}
	return Target(n)
}

// Target resolves an alias; any other node is returned unchanged.
func Target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// IsNull reports whether a node is null or missing.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// KindOf names the kind of a node, for messages.
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

// Quote formats a value for a message: escaped and shortened.
func Quote(s string) string {
	const longest = 60
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "..."
	}
	return strconv.Quote(s)
}
