package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

func inTree(names ...string) string { return filepath.Join(append([]string{"..", ".."}, names...)...) }

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(inTree(name))
	require.NoError(t, err)
	return string(text)
}

// A moduleFile is a go.mod or a go.work, as the go command describes it.
type moduleFile struct {
	Go      string
	Use     []struct{ DiskPath string }
	Require []struct {
		Path, Version string
		Indirect      bool
	}
}

func moduleFileOf(t *testing.T, command, name string) (file moduleFile) {
	t.Helper()
	out, err := exec.Command("go", command, "edit", "-json", inTree(name)).Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &file))
	return file
}

// TestModulesRequireTheSame: if two modules of the workspace require the same dependency directly, they require the
// same version. In a workspace, the go command builds the highest version.
func TestModulesRequireTheSame(t *testing.T) {
	versions := map[string]string{}
	for _, use := range moduleFileOf(t, "work", "go.work").Use {
		for _, r := range moduleFileOf(t, "mod", path.Join(use.DiskPath, "go.mod")).Require {
			if r.Indirect {
				continue
			}
			if other := versions[r.Path]; other != "" {
				assert.Equal(t, other, r.Version, "%s/go.mod requires %s", use.DiskPath, r.Path)
			}
			versions[r.Path] = r.Version
		}
	}
	assert.NotEmpty(t, versions["github.com/stretchr/testify"])
}

// TestVersionsThatCannotBeReleased: if a version cannot be released, the release refuses it before its first step.
func TestVersionsThatCannotBeReleased(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a release is made by a shell script")
	}
	for version, want := range map[string]string{
		"": "want one such as", "1.2.3": "want one such as", "v1.2": "want one such as", "v1.2.3+linux": "want one such as",
		"v2.0.0": "must end in /v2",
	} {
		out, err := exec.Command(inTree(".ci", "release"), version).CombinedOutput()
		assert.Error(t, err, version)
		assert.Contains(t, string(out), want, version)
	}
}

// instructions returns the instructions of a Dockerfile that begin with the given word. Each is a list of words.
func instructions(dockerfile, word string) (found [][]string) {
	for line := range strings.Lines(strings.ReplaceAll(dockerfile, "\\\n", " ")) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == word {
			found = append(found, words[1:])
		}
	}
	return found
}

// TestDockerfile: the files that the Dockerfile copies exist. Every module is copied before its dependencies are
// downloaded. The image has a health check, and its user is not root.
func TestDockerfile(t *testing.T) {
	text := read(t, "Dockerfile")
	copied := map[string]bool{}
	for _, words := range instructions(text, "COPY") {
		if strings.HasPrefix(words[0], "--from=") {
			continue
		}
		for _, name := range words[:len(words)-1] {
			_, err := os.Stat(inTree(name))
			assert.NoError(t, err)
			copied[name] = true
		}
	}
	for _, use := range moduleFileOf(t, "work", "go.work").Use {
		assert.True(t, copied[path.Join(use.DiskPath, "go.mod")], "%s/go.mod: go.work uses it", use.DiskPath)
	}
	user := instructions(text, "USER")
	require.Len(t, user, 1)
	assert.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, user[0][0], "a number, because an empty image knows no names")
	assert.Equal(t, []string{"CMD", `["/weir",`, `"health"]`}, instructions(text, "HEALTHCHECK")[0][3:])
	assert.Equal(t, []string{"scratch"}, instructions(text, "FROM")[1])
	goVersion := instructions(text, "FROM")[0][0]
	assert.Contains(t, moduleFileOf(t, "mod", "go.mod").Go, strings.TrimSuffix(strings.TrimPrefix(goVersion, "golang:"), "-bookworm"))
}

// unit returns the values of each "Section.Key" of a systemd unit.
func unit(t *testing.T, text string) map[string][]string {
	t.Helper()
	values, section := map[string][]string{}, ""
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			section = strings.Trim(line, "[]")
			continue
		}
		key, value, found := strings.Cut(line, "=")
		require.True(t, found, "%q", line)
		values[section+"."+key] = append(values[section+"."+key], value)
	}
	return values
}

// TestSystemdUnit: systemd accepts the unit. The unit has the restrictions that its comments state.
func TestSystemdUnit(t *testing.T) {
	values := unit(t, read(t, "packaging/weir.service"))
	assert.Equal(t, []string{"/usr/bin/weir serve /etc/weir/weir.yaml"}, values["Service.ExecStart"])
	for key, want := range map[string]string{
		"DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes",
		"PrivateDevices":         "yes",
		"MemoryDenyWriteExecute": "yes", "CapabilityBoundingSet": "CAP_NET_BIND_SERVICE",
		"SystemCallArchitectures": "native",
	} {
		assert.Equal(t, []string{want}, values["Service."+key], key)
	}
	assert.Equal(t, []string{"@system-service", "~@privileged @resources"}, values["Service.SystemCallFilter"])

	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze on the PATH to verify the unit with")
	}
	// systemd-analyze requires that the programs of a unit exist. weir is not installed, so this copy of the unit names
	// another program.
	copied := filepath.Join(t.TempDir(), "weir.service")
	text := strings.ReplaceAll(read(t, "packaging/weir.service"), "/usr/bin/weir", "/bin/true")
	require.NoError(t, os.WriteFile(copied, []byte(text), 0o600))
	out, err := exec.Command(systemd, "verify", "--man=no", copied).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "weir.service", "it complains of nothing")
	out, err = exec.Command(systemd, "security", "--offline=true", "--threshold=20", copied).CombinedOutput()
	assert.NoError(t, err, "more exposed than 2.0 of 10:\n%s", out)
}

// TestGoreleaser: the files that the configuration names exist. Everything else is checked by `goreleaser check`.
func TestGoreleaser(t *testing.T) {
	var config struct {
		Builds   []struct{ Dir, Main, Binary string }
		Archives []struct{ Files []string }
		Before   struct{ Hooks []string }
		Nfpms    []struct {
			Bindir   string
			Contents []struct{ Src, Dst string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &config))
	var programs []string
	for _, b := range config.Builds {
		assert.FileExists(t, inTree(b.Dir, b.Main, "main.go"))
		programs = append(programs, b.Binary)
	}
	assert.Equal(t, []string{"weir", "weir-envoy"}, programs)
	for _, pattern := range config.Archives[0].Files {
		if !strings.HasPrefix(pattern, "made/") { // packaging/kit makes these
			found, err := filepath.Glob(inTree(pattern))
			require.NoError(t, err)
			assert.NotEmpty(t, found, pattern)
		}
	}
	paths := read(t, "packaging/weir.service")
	assert.Contains(t, paths, "ExecStart="+config.Nfpms[0].Bindir+"/weir ")
	for _, c := range config.Nfpms[0].Contents {
		if !strings.HasPrefix(c.Src, "made/") {
			assert.FileExists(t, inTree(c.Src))
		}
		if path.Ext(c.Dst) == ".yaml" {
			assert.Contains(t, paths, c.Dst, "where the unit looks for it")
		}
	}
	var hooks []string
	for _, kind := range []string{"man", "licenses", "sbom"} {
		hooks = append(hooks, "packaging/kit "+kind+" made/"+kind)
	}
	assert.Equal(t, hooks, config.Before.Hooks)
}

// TestForge: the configuration looks for updates of dependencies in every module.
func TestForge(t *testing.T) {
	var updates struct {
		Updates []struct{ Directories []string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &updates))
	found, err := filepath.Glob(inTree("*", "go.mod"))
	require.NoError(t, err)
	modules := []string{"/"}
	for _, name := range found {
		modules = append(modules, "/"+filepath.Base(filepath.Dir(name)))
	}
	assert.ElementsMatch(t, modules, updates.Updates[0].Directories)
}
