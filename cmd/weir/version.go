package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run implements the command.
func (versionCommand) Run() error { return writeVersion(os.Stdout, buildInfo()) }

func buildInfo() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{} // stripped of it: the Go version is still known
	}
	return info
}

// versionOf returns that of the program.
func versionOf(info *debug.BuildInfo) string { return cmp.Or(info.Main.Version, "(unknown)") }

// writeVersion prints what a bug report needs: the version, the commit if the
// program was built from one, and the platform.
func writeVersion(w io.Writer, info *debug.BuildInfo) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := ""
	if revision := settings["vcs.revision"]; revision != "" {
		commit = fmt.Sprintf("commit %s of %s", revision, settings["vcs.time"])
		if settings["vcs.modified"] == "true" {
			commit += ", modified"
		}
		commit += "\n"
	}
	_, err := fmt.Fprintf(w, "weir %s\n%s%s %s/%s\n", versionOf(info), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
