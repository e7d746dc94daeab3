package rulefile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// maxNodes bounds the number of values that are read. A value counts once for each alias, so a short file cannot expand
// without bound.
const maxNodes = 200_000

// A decoder reads the nodes of a file and collects mistakes. docs/decisions/0018-a-decoder-of-our-own.md says why no
// library is used.
type decoder struct {
	yamlfile.Walker

	certificates      []certificate // Load reads them
	proxyProtocolNode *yaml.Node    // a proxy_protocol that is true
	concurrencyNode   *yaml.Node    // the first concurrency of a rule
	answerCostNode    *yaml.Node    // the first cost that is known only from answers
	passwordsNode     *yaml.Node    // password_file or password_env of redis; Load reads the passwords
	tokensNode        *yaml.Node    // token_file of admin; Load reads the tokens
}

type certificate struct {
	node  *yaml.Node
	files *TLS
}

// resolveNode counts a node and returns it, or the node that an alias names. It returns nil if there is nothing to
// read.
func (d *decoder) resolveNode(n *yaml.Node) *yaml.Node {
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

var knownTags = []string{
	"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!binary", "!!merge",
}
