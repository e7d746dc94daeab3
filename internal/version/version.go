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

// Text returns what a bug report needs. This is the version and the platform. If the program was built in a checkout,
// it also has the commit. If the program was installed from a module, it also has the checksum of the module.
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
