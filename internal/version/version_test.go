package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersionSaysWhatABugReportNeeds(t *testing.T) {
	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc123"}
	when := debug.BuildSetting{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"release":  {built("v1.2.3"), "weir v1.2.3\n"},
		"checkout": {built("(devel)", revision, when), "weir (devel)\ncommit abc123 of 2026-01-02T03:04:05Z\n"},
		"changed": {built("(devel)", revision, when, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"weir (devel)\ncommit abc123 of 2026-01-02T03:04:05Z, modified\n"},
		"installed": {&debug.BuildInfo{Main: debug.Module{Path: "example.com/weir", Version: "v1.2.3", Sum: "h1:abc="}},
			"weir v1.2.3\nmodule example.com/weir h1:abc=\n"},
		"stripped": {built(""), "weir (unknown)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want+platform, Text("weir", c.info))
		})
	}
}
