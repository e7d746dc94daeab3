package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/weir-go/weir/cmd/internal/limit"
)

// givenFlags has the names of the flags in the command line, without dashes.
type givenFlags map[string]bool

// newGivenFlags returns the flags of a command line. A flag that is given twice is an error, unless it is a list.
func newGivenFlags(command *kong.Context) (givenFlags, error) {
	given := givenFlags{}
	for _, part := range command.Path {
		if part.Flag == nil || part.Resolved {
			continue
		}
		name := part.Flag.Name
		if given[name] && !part.Flag.IsCumulative() {
			return nil, limit.Misuse("--%s is given twice: leave one of the two out", name)
		}
		given[name] = true
	}
	return given, nil
}

var limitFlags = []string{"limit", "algorithm", "burst", "aligned", "max-keys"}

// checkUnused returns an error if one of the flags is given. The reason says why these flags would have no effect, and
// what to do.
func (g givenFlags) checkUnused(reason string, names ...string) error {
	if i := slices.IndexFunc(names, func(name string) bool { return g[name] }); i >= 0 {
		return limit.Misuse("--%s: %s", names[i], reason)
	}
	return nil
}

// definedBy is a reason for [givenFlags.checkUnused].
func definedBy(file string) string {
	return fmt.Sprintf("the rules of %s define the limits: leave one of the two out", file)
}
