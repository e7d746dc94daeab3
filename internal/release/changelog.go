package main

import (
	"fmt"
	"strings"
	"time"
)

const unreleased = "## Unreleased\n"

// releaseChanges returns a changelog whose unreleased changes are those of a version.
func releaseChanges(changelog, version string, day time.Time) (string, error) {
	before, rest, found := strings.Cut(changelog, "\n"+unreleased)
	if !found {
		return "", fmt.Errorf("CHANGELOG.md has no line %q", strings.TrimSpace(unreleased))
	}
	changes, _, _ := strings.Cut(rest, "\n## ")
	if strings.TrimSpace(changes) == "" {
		return "", fmt.Errorf("CHANGELOG.md says of no change under %q", strings.TrimSpace(unreleased))
	}
	return fmt.Sprintf("%s\n%s\n## %s, %s\n%s", before, unreleased, version, day.Format(time.DateOnly), rest), nil
}
