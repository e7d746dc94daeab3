package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run() error {
	_, err := fmt.Println(versionText(buildInfo()))
	return err
}

func buildInfo() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{} // stripped of it: the Go version is still known
	}
	return info
}

// versionOf returns that of the program.
func versionOf(info *debug.BuildInfo) string { return cmp.Or(info.Main.Version, "(unknown)") }

// versionText returns what a bug report needs: the version, the commit if the program was built in
// a checkout or the sum of its module if it was installed as one, and the platform.
func versionText(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	source := ""
	if revision := settings["vcs.revision"]; revision != "" {
		source = fmt.Sprintf("commit %s of %s", revision, settings["vcs.time"])
		if settings["vcs.modified"] == "true" {
			source += ", modified"
		}
		source += "\n"
	} else if info.Main.Sum != "" {
		source = fmt.Sprintf("module %s %s\n", info.Main.Path, info.Main.Sum)
	}
	return fmt.Sprintf("weir %s\n%s%s %s/%s", versionOf(info), source, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
