package rulefile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// maxNodes bounds the number of values that are read. A value counts as often as aliases name it, so that a short file
// cannot stand for an endless one.
const maxNodes = 200_000

// A decoder walks the nodes of a file and collects the mistakes. docs/decisions/0018-a-decoder-of-our-own.md says why
// it is not from a library.
type decoder struct {
	yamlfile.Walker

	certificates []certificate // to be read by Load
	proxied      *yaml.Node    // proxy_protocol, if it is true
	concurrent   *yaml.Node    // the first concurrency of a rule
	settled      *yaml.Node    // the first cost that is only in answers
	passwords    *yaml.Node    // password_file or password_env of redis, to be read by Load
	tokens       *yaml.Node    // token_file of admin, the same
}

type certificate struct {
	at    *yaml.Node
	files *TLS
}

// enter counts a node and returns it, or the node of its alias; nil if there is nothing to read.
func (d *decoder) enter(n *yaml.Node) *yaml.Node {
	t := d.Visit(n, maxNodes, "the file has more than %d values, each counted as often as an alias names it: use "+
		"fewer aliases")
	if t == nil {
		return nil
	}
	if t.Tag != "" && !slices.Contains(knownTags, t.Tag) {
		d.Fail(n, "unknown tag %s: leave it out", yamlfile.Quote(t.Tag))
		return nil
	}
	return t
}

// knownTags are the tags of YAML's values.
var knownTags = []string{
	"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!binary", "!!merge",
}
