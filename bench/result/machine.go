package result

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// A Machine describes where a run was made.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Kernel string `json:"kernel,omitempty"`
	Clock  string `json:"clock,omitempty"` // the clock source of the kernel
	Huge   string `json:"huge_pages,omitempty"`
	Go     string `json:"go"`
	Weir   string `json:"weir"`           // the version and the commit
	Load   string `json:"load,omitempty"` // averages over one, five and fifteen minutes when the run began
}

// ThisMachine describes the machine and the program.
func ThisMachine() Machine {
	return Machine{
		CPU:    cpu(),
		Cores:  runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: line("/proc/sys/kernel/osrelease"),
		Clock:  line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Huge:   line("/sys/kernel/mm/transparent_hugepage/enabled"),
		Go:     runtime.Version(),
		Weir:   weir(),
		Load:   load(),
	}
}

func line(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func cpu() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// load returns the system's load averages, which count processes that run or are ready to run.
func load() string {
	fields := strings.Fields(line("/proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func weir() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version += " " + s.Value
		}
	}
	return version
}

// Versions returns the version of every module in the program.
func Versions() map[string]string {
	versions := map[string]string{"standard library": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			versions[m.Path] = m.Version
		}
	}
	return versions
}
