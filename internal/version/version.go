// Package version reports what a program was built from.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Info returns the build information of the program.
func Info() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{} // the build information was stripped; only the Go version is known
	}
	return info
}

// Of returns the version of the program.
func Of(info *debug.BuildInfo) string { return cmp.Or(info.Main.Version, "(unknown)") }

// Text returns what a bug report needs: the version and the platform, the commit if the program was built in a
// checkout, and the checksum of the module if it was installed from one.
func Text(program string, info *debug.BuildInfo) string {
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
	return fmt.Sprintf("%s %s\n%s%s %s/%s", program, Of(info), source, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
