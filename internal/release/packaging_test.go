package main

import (
	"bufio"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, tree *tree, name string) string {
	t.Helper()
	text, err := os.ReadFile(tree.join(name))
	require.NoError(t, err)
	return string(text)
}

// commands returns the words of the lines of a Dockerfile that begin with a word, continued ones as one.
func commands(dockerfile, word string) (found [][]string) {
	for line := range strings.Lines(strings.ReplaceAll(dockerfile, "\\\n", " ")) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == word {
			found = append(found, words[1:])
		}
	}
	return found
}

// TestDockerfile: what it copies exists, every module of the workspace is there before the modules are downloaded, and
// the image runs as a user that is not root and is asked for its health.
func TestDockerfile(t *testing.T) {
	tree := repository(t)
	text := read(t, tree, "Dockerfile")
	copied := map[string]bool{}
	for _, words := range commands(text, "COPY") {
		if strings.HasPrefix(words[0], "--from=") {
			continue
		}
		for _, name := range words[:len(words)-1] {
			_, err := os.Stat(tree.join(name))
			assert.NoError(t, err)
			copied[name] = true
		}
	}
	for _, use := range tree.work.Use {
		assert.True(t, copied[path.Join(use.Path, "go.mod")], "%s/go.mod: go.work uses it", use.Path)
	}
	user := commands(text, "USER")
	require.Len(t, user, 1)
	assert.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, user[0][0], "a number, because an empty image knows no names")
	assert.Equal(t, []string{"CMD", `["/weir",`, `"health"]`}, commands(text, "HEALTHCHECK")[0][3:])
	assert.Equal(t, []string{"scratch"}, commands(text, "FROM")[1])
	goVersion := commands(text, "FROM")[0][0]
	file, err := tree.goMod(tree.modules[0])
	require.NoError(t, err)
	assert.Contains(t, file.Go.Version, strings.TrimSuffix(strings.TrimPrefix(goVersion, "golang:"), "-bookworm"))
}

// unit parses a systemd unit: every value of "Section.Key".
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

// TestSystemdUnit: it is what systemd takes, and as closed as its comments say.
func TestSystemdUnit(t *testing.T) {
	tree := repository(t)
	values := unit(t, read(t, tree, "packaging/weir.service"))
	assert.Equal(t, []string{"/usr/local/bin/weir serve /etc/weir/weir.yaml"}, values["Service.ExecStart"])
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
	// It looks whether the programs exist, and weir is not installed.
	copied := filepath.Join(t.TempDir(), "weir.service")
	text := strings.ReplaceAll(read(t, tree, "packaging/weir.service"), "/usr/local/bin/weir", "/bin/true")
	require.NoError(t, os.WriteFile(copied, []byte(text), 0o600))
	out, err := exec.Command(systemd, "verify", "--man=no", copied).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "weir.service", "it complains of nothing")
	out, err = exec.Command(systemd, "security", "--offline=true", "--threshold=20", copied).CombinedOutput()
	assert.NoError(t, err, "more exposed than 2.0 of 10:\n%s", out)
}

// TestGoreleaser: what its configuration names exists. `goreleaser check` knows the rest.
func TestGoreleaser(t *testing.T) {
	tree := repository(t)
	var config struct {
		Builds   []struct{ Dir, Main, Binary string }
		Archives []struct{ Files []string }
		Nfpms    []struct{ Contents []struct{ Src, Dst string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, tree, ".goreleaser.yaml")), &config))
	var programs []string
	for _, b := range config.Builds {
		assert.FileExists(t, tree.join(b.Dir, b.Main, "main.go"))
		programs = append(programs, b.Binary)
	}
	assert.Equal(t, []string{"weir", "weir-envoy"}, programs)
	for _, pattern := range config.Archives[0].Files {
		found, err := filepath.Glob(tree.join(pattern))
		require.NoError(t, err)
		assert.NotEmpty(t, found, pattern)
	}
	paths := read(t, tree, "packaging/weir.service")
	for _, c := range config.Nfpms[0].Contents {
		assert.FileExists(t, tree.join(c.Src))
		if path.Ext(c.Dst) == ".yaml" {
			assert.Contains(t, paths, c.Dst, "where the unit looks for it")
		}
	}
}
