package config

import (
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// maxNodes bounds the values that are looked at, each as often as aliases name it, so that
// a short file cannot stand for an endless one.
const maxNodes = 200_000

// maxErrors is where the reading stops: a file with more mistakes is another kind of file.
const maxErrors = 100

// A decoder walks the nodes of a file and gathers what is wrong with them: docs/decisions/0018-a-decoder-of-our-own.md
// says why it is not a library's.
type decoder struct {
	file   string
	errors Errors
	nodes  int
	full   bool // of nodes or errors: nothing more is read

	certificates []certificate // to be tried by Load
	proxied      *yaml.Node    // proxy_protocol, where it is true
	besides      bool          // the rule has a concurrency beside its rate
	concurrent   *yaml.Node    // the first concurrency of a rule
	passwords    *yaml.Node    // password_file or password_env of redis, to be tried by Load
	wishes       []storeWish   // of the rules
}

type certificate struct {
	at    *yaml.Node
	files *TLS
}

// fail notes a mistake at the place of n.
func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	if d.full {
		return
	}
	d.errors = append(d.errors, &Error{d.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
	d.full = len(d.errors) >= maxErrors
}

// enter counts a node and returns what it stands for; nil if there is nothing to read.
func (d *decoder) enter(n *yaml.Node) *yaml.Node {
	if d.full {
		return nil
	}
	if d.nodes++; d.nodes > maxNodes {
		d.fail(n, "the file comes to more than %d values, each counted as often as an alias names it: use fewer "+
			"aliases", maxNodes)
		d.full = true
		return nil
	}
	t := target(n)
	if t.Tag != "" && !slices.Contains(knownTags, t.Tag) {
		d.fail(n, "unknown tag %s: leave it out", quote(t.Tag))
		return nil
	}
	return t
}

// knownTags are those of the values of YAML.
var knownTags = []string{
	"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!binary", "!!merge",
}

// target follows an alias. It stands for a node that is none itself.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// kindOf names what a node is, for messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		return quote(n.Value)
	}
	return "something else"
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// quote renders a value in a message: escaped, and short.
func quote(s string) string {
	const longest = 60
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "..."
	}
	return strconv.Quote(s)
}
