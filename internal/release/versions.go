package main

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// setVersion makes the modules require a version of each other, go.work replace it, and go.sum
// hold what the go command will find when it is tagged.
func (t *tree) setVersion(version string) error {
	if err := t.replaceBy(version, "go.work", t.work); err != nil {
		return err
	}
	for _, m := range apart {
		name, work, err := t.workOf(m.folder)
		if err != nil {
			return err
		}
		if err := t.replaceBy(version, name, work); err != nil {
			return err
		}
	}
	t.version = version

	// A module's sum covers its go.mod and go.sum, so those that it requires come first.
	sums := map[string]string{}
	for _, m := range t.modules {
		if err := t.setModule(m, sums); err != nil {
			return err
		}
		if !m.published {
			continue
		}
		own, err := t.sums(m, version)
		if err != nil {
			return err
		}
		sums[m.path] = own
	}
	return nil
}

// replaceBy makes a go.work replace a version of the modules.
func (t *tree) replaceBy(version, name string, work *modfile.WorkFile) error {
	for _, r := range work.Replace {
		if !t.own(r.Old.Path) {
			continue
		}
		// In place, because DropReplace and AddReplace lose the comment and the block.
		r.Syntax.Token[slices.Index(r.Syntax.Token, r.Old.Version)] = version
		r.Old.Version = version
	}
	return os.WriteFile(t.join(name), modfile.Format(work.Syntax), 0o644)
}

// setModule sets what a module requires of the modules whose sums are given.
func (t *tree) setModule(m mod, sums map[string]string) error {
	file, err := t.goMod(m)
	if err != nil {
		return err
	}
	own := ""
	for _, r := range file.Require {
		if t.own(r.Mod.Path) {
			own += sums[r.Mod.Path]
			if err := file.AddRequire(r.Mod.Path, t.version); err != nil {
				return err
			}
		}
	}
	if own == "" {
		return nil
	}
	text, err := file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.join(m.folder, "go.mod"), text, 0o644); err != nil {
		return err
	}
	name := t.join(m.folder, "go.sum")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for line := range strings.Lines(string(old)) {
		if path, _, _ := strings.Cut(line, " "); !t.own(path) {
			lines.WriteString(line)
		}
	}
	return os.WriteFile(name, []byte(lines.String()+own), 0o644)
}
