package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// release commits a tree with a version and tags its modules. Without really it does so in a copy
// of the tree, checks that, and says what it would have changed. Pushing is left to the caller.
func release(t *tree, version string, really bool, out io.Writer) error {
	if err := t.accepts(version); err != nil {
		return err
	}
	changed, err := command(t.folder, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" && really {
		return fmt.Errorf("the tree has changes that are not committed:\n%s", changed)
	}
	folder, err := os.MkdirTemp("", "weir-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	next, err := t.copyTo(filepath.Join(folder, "tree"))
	if err != nil {
		return err
	}
	if err := next.prepare(version); err != nil {
		return err
	}
	if err := check(next, out); err != nil {
		return err
	}
	if !really {
		// git diff ends with 1 where there are differences.
		diff, _ := command(next.folder, nil, "git", "diff", "--stat", "-p")
		fmt.Fprintf(out, "\n%s\n\nWould commit this and tag it:\n%s\nNothing is done yet: REALLY=yes does it.\n", diff,
			t.tags(version))
		return nil
	}
	if err := t.commit(version); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nCommitted and tagged:\n%s\nPublish with:\n  git push --atomic origin HEAD %s\n",
		t.tags(version), strings.Join(strings.Fields(t.tags(version)), " "))
	return nil
}

// commit prepares the tree, commits that, and tags the commit for every module.
func (t *tree) commit(version string) error {
	if err := t.prepare(version); err != nil {
		return err
	}
	if _, err := command(t.folder, nil, "git", "commit", "--quiet", "--all", "--message",
		"Release "+version); err != nil {
		return err
	}
	for tag := range strings.FieldsSeq(t.tags(version)) {
		if _, err := command(t.folder, nil, "git", "tag", "--annotate", tag, "--message", "weir "+version); err != nil {
			return err
		}
	}
	return nil
}

// accepts fails if a version cannot be the next.
func (t *tree) accepts(version string) error {
	if semver.Canonical(version) != version || version == "" || semver.Build(version) != "" {
		return fmt.Errorf("version %q: want one such as v1.2.3 or v1.2.3-rc.1", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("version %q: from v2 on the module paths must end in /%s", version, major)
	}
	tags, err := command(t.folder, nil, "git", "tag", "--list", "v*")
	if err != nil {
		return err
	}
	for _, tag := range strings.Fields(tags) {
		if semver.Compare(tag, version) >= 0 {
			return fmt.Errorf("version %q is not above %s, which is released", version, tag)
		}
	}
	return nil
}

// prepare writes what a release changes: the versions, the sums, and the changelog.
func (t *tree) prepare(version string) error {
	name := t.join("CHANGELOG.md")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	changes, err := releaseChanges(string(old), version, time.Now())
	if err != nil {
		return err
	}
	// Before the versions, because the sum of the root module covers it.
	if err := os.WriteFile(name, []byte(changes), 0o644); err != nil {
		return err
	}
	return t.setVersion(version)
}

// tags returns a line for the tag of every module, in the order in which they are set.
func (t *tree) tags(version string) (lines string) {
	for _, m := range t.modules {
		if m.published {
			lines += "  " + m.tag(version) + "\n"
		}
	}
	return lines
}

// copyTo copies the tree into a new repository whose only commit it is.
func (t *tree) copyTo(folder string) (*tree, error) {
	names, err := t.files()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(t.join(name))
		if err != nil {
			return nil, err
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
		info, err := os.Stat(t.join(name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			return nil, err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "--all"},
		{"-c", "user.name=release", "-c", "user.email=release@localhost", "commit", "--quiet", "--message", "copy"},
	} {
		if _, err := command(folder, nil, "git", args...); err != nil {
			return nil, err
		}
	}
	return readTree(folder)
}
