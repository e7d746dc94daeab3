package rulefile

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
	"github.com/weir-go/weir/internal/unixsocket"
)

// DefaultMode is the mode of a Unix socket's file if the rule file sets none: access for the user and the group of
// weir.
const DefaultMode fs.FileMode = 0o660

// maxSocketPath is the length of the longest path of a Unix socket. Systems have room for 104 or 108 bytes.
const maxSocketPath = 100

func isSocket(address string) bool {
	_, ok := unixsocket.Path(address)
	return ok
}

// socketPath refuses a path that a Unix socket cannot have.
func (d *decoder) socketPath(n *yaml.Node, keyName, path string) {
	switch {
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		d.Fail(n, "%s: %s: want the full path of a socket: unix:/run/weir/weir.sock", keyName, yamlfile.Quote(path))
	case len(path) > maxSocketPath:
		d.Fail(n, "%s: %s: the path of a socket has up to %d bytes, this one %d", keyName, yamlfile.Quote(path), maxSocketPath,
			len(path))
	}
}

// mode describes the mode of a Unix socket's file, in octal digits.
var mode = withReference("mode", scalar(nil, func(d *decoder, n *yaml.Node, keyName, s string) fs.FileMode {
	value, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
	if err != nil || len(s) < 3 || value > 0o777 || value&0o200 == 0 {
		d.Fail(n, "%s: %s: want three octal digits, as for chmod, writable for the owner: 660", keyName, yamlfile.Quote(s))
	}
	return fs.FileMode(value)
}))
