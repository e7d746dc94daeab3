package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func repository(t *testing.T) *tree {
	t.Helper()
	tree, err := openTree()
	require.NoError(t, err)
	return tree
}

// clone returns a copy of the repository as a git repository, which a test may change.
func clone(t *testing.T) *tree {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git on the PATH: a release is a commit and tags")
	}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "release")
		t.Setenv("GIT_"+who+"_EMAIL", "release@localhost")
	}
	copied, err := repository(t).copyTo(filepath.Join(t.TempDir(), "tree"))
	require.NoError(t, err)
	return copied
}

// TestSumsAreThoseOfTheTags: what a release writes into go.sum is what the go command finds when it takes the modules
// from the tags, so that the tree of a tag builds without the workspace, too.
func TestSumsAreThoseOfTheTags(t *testing.T) {
	const version = "v1.9.0"
	tree := clone(t)
	require.NoError(t, tree.commit(version))
	tags, err := command(tree.folder, nil, "git", "tag", "--list")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{version, "redislimit/" + version, "cmd/" + version, "grpclimit/" + version, "otellimit/" + version, "limitertest/" + version, "caddylimit/" + version}, strings.Fields(tags))

	cache := t.TempDir()
	direct := []string{
		"GOWORK=off", "GOFLAGS=-modcacherw", "GOMODCACHE=" + cache, "GOPROXY=direct", "GONOSUMDB=*", "GOVCS=*:git",
		// The repository's address is that folder.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + tree.folder + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://github.com/weir-go/weir",
	}
	sum, err := os.ReadFile(tree.join("cmd", "go.sum"))
	require.NoError(t, err)
	for _, m := range tree.modules[:len(published)] {
		out, err := command(cache, direct, "go", "mod", "download", "-json", m.path+"@"+version)
		require.NoError(t, err)
		var found struct{ Sum, GoModSum string }
		require.NoError(t, json.Unmarshal([]byte(out), &found))
		if m.folder == "cmd" || m.folder == "grpclimit" || m.folder == "otellimit" || m.folder == "limitertest" {
			continue // nothing requires them
		}
		assert.Contains(t, string(sum), m.path+" "+version+" "+found.Sum+"\n")
		assert.Contains(t, string(sum), m.path+" "+version+"/go.mod "+found.GoModSum+"\n")
	}

	// The workspace of the release works, and names nothing that is older.
	_, err = command(tree.folder, []string{"GOWORK=", "GOPROXY=off"}, "go", "list", "work")
	require.NoError(t, err)
	_, err = command(tree.join("examples"), []string{"GOWORK=off"}, "go", "list", "-deps", "./grpc")
	require.NoError(t, err, "the examples require what is released, beside them")
	again, err := readTree(tree.folder)
	require.NoError(t, err)
	assert.Equal(t, version, again.version)
	assert.ErrorContains(t, again.accepts(version), "not above v1.9.0")
	assert.NoError(t, again.accepts("v1.9.1-rc.1"))
	changelog, err := os.ReadFile(tree.join("CHANGELOG.md"))
	require.NoError(t, err)
	assert.Contains(t, string(changelog), "\n## Unreleased\n\n## v1.9.0, 2")
	assert.ErrorContains(t, again.prepare("v1.9.1"), "no change", "a release says what is new")
}

// TestVersionsThatCannotBeTheNext are refused before anything is done.
func TestVersionsThatCannotBeTheNext(t *testing.T) {
	tree := clone(t)
	for version, want := range map[string]string{
		"": "want one such as", "1.2.3": "want one such as", "v1.2": "want one such as",
		"v1.2.3+linux": "want one such as",
		"v2.0.0":       "must end in /v2",
	} {
		assert.ErrorContains(t, release(tree, version, true, io.Discard), want, version)
	}
	require.NoError(t, os.WriteFile(tree.join("new"), nil, 0o600))
	assert.ErrorContains(t, release(tree, "v1.0.0", true, io.Discard), "not committed")
}

func TestReleaseChanges(t *testing.T) {
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	got, err := releaseChanges("# Changelog\n\n## Unreleased\n\n- new\n\n## v0.1.0, 2026-01-01\n\n- old\n", "v0.2.0",
		day)
	require.NoError(t, err)
	assert.Equal(t,
		"# Changelog\n\n## Unreleased\n\n## v0.2.0, 2026-11-21\n\n- new\n\n## v0.1.0, 2026-01-01\n\n- old\n", got)
	_, err = releaseChanges("# Changelog\n", "v0.2.0", day)
	assert.ErrorContains(t, err, "no line")
}

// TestModulesRequireTheSame: in a workspace a module is built with the highest version that any of them requires. Where
// two require the same module directly, that is the version of both.
func TestModulesRequireTheSame(t *testing.T) {
	tree := repository(t)
	versions := map[string]string{}
	for _, m := range tree.modules {
		if m.apart {
			continue // nothing is built with it
		}
		file, err := tree.goMod(m)
		require.NoError(t, err)
		for _, r := range file.Require {
			if r.Indirect {
				continue
			}
			if other := versions[r.Mod.Path]; other != "" {
				assert.Equal(t, other, r.Mod.Version, "%s/go.mod requires %s", m.folder, r.Mod.Path)
			}
			versions[r.Mod.Path] = r.Mod.Version
		}
	}
	assert.NotEmpty(t, versions["github.com/stretchr/testify"])
}

// TestTreesThatCannotBePublished are told from the one that can.
func TestTreesThatCannotBePublished(t *testing.T) {
	tree := clone(t)
	edit := func(name, old, new string) func() {
		text, err := os.ReadFile(tree.join(name))
		require.NoError(t, err)
		require.Contains(t, string(text), old)
		require.NoError(t, os.WriteFile(tree.join(name), []byte(strings.Replace(string(text), old, new, 1)), 0o600))
		return func() { require.NoError(t, os.WriteFile(tree.join(name), text, 0o600)) }
	}
	for _, c := range []struct{ file, old, new, want string }{
		{"cmd/go.mod", "require (", "replace github.com/weir-go/weir => ..\n\nrequire (", "cmd/go.mod replaces a module"},
		{"cmd/go.mod", "github.com/weir-go/weir v", "github.com/weir-go/weir v1.2.3 // v", "cmd/go.mod requires github.com/weir-go/weir@v1.2.3, others"},
		{"go.work", "github.com/weir-go/weir/redislimit v", "github.com/weir-go/weir/redislimit v1.2.3 => ./redislimit // v", "go.work replaces github.com/weir-go/weir/redislimit@v1.2.3"},
		{"go.work", "./cmd", "", "does not use cmd"},
		{"caddylimit/go.work", "github.com/weir-go/weir v", "github.com/weir-go/weir v1.2.3 => .. // v", "caddylimit/go.work replaces github.com/weir-go/weir@v1.2.3"},
		{"caddylimit/go.mod", "github.com/weir-go/weir v", "github.com/weir-go/weir v1.2.3 // v", "caddylimit/go.mod requires github.com/weir-go/weir@v1.2.3, others"},
	} {
		restore := edit(c.file, c.old, c.new)
		_, err := readTree(tree.folder)
		assert.ErrorContains(t, err, c.want)
		restore()
	}
	_, err := readTree(tree.folder)
	assert.NoError(t, err)
}

// TestHeavy: the check of the module graph fails for what importers must not get.
func TestHeavy(t *testing.T) {
	const root = "github.com/weir-go/weir"
	allowed := "a.b/c " + root + "@v0.1.0\n" + root + "@v0.1.0 github.com/cespare/xxhash/v2@v2.3.0\n" + root +
		"@v0.1.0 go@1.25.0\n" +
		"github.com/stretchr/testify@v1.12.1 example.com/its-own@v1.0.0"
	assert.NoError(t, heavy(allowed, root))
	assert.ErrorContains(t, heavy(allowed+"\n"+root+"@v0.1.0 pgregory.net/rapid@v1.3.0", root),
		"requires pgregory.net/rapid@v1.3.0")
}
