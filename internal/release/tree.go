package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// A tree is a checkout of the repository.
type tree struct {
	folder  string
	modules []mod  // those that are published first, each after those that it requires
	version string // that they require of each other
	work    *modfile.WorkFile
}

// A mod is a module of the repository.
type mod struct {
	folder    string // below that of the tree, with slashes; "." for the root
	path      string
	published bool // that people import or install it
	apart     bool // that it has a go.work of its own
}

// published are the folders of the modules that people import or install, each after those that it requires.
var published = []string{".", "redislimit", "cmd", "grpclimit", "otellimit", "limitertest"}

// apart are the modules that have a go.work of their own, and are not in that of the repository. They come last.
var apart = []mod{
	{folder: "examples", apart: true},
	{folder: "caddylimit", published: true, apart: true},
}

// tag returns what a version of the module is called in git.
func (m mod) tag(version string) string { return path.Join(m.folder, version) }

// openTree returns the checkout that the working directory is in.
func openTree() (*tree, error) {
	work, err := command(".", []string{"GOWORK="}, "go", "env", "GOWORK")
	if err != nil {
		return nil, err
	}
	if work == "" || work == "off" {
		return nil, fmt.Errorf("no go.work above the working directory")
	}
	return readTree(filepath.Dir(work))
}

func readTree(folder string) (*tree, error) {
	t := &tree{folder: folder}
	text, err := os.ReadFile(t.join("go.work"))
	if err != nil {
		return nil, err
	}
	if t.work, err = modfile.ParseWork("go.work", text, nil); err != nil {
		return nil, err
	}
	others := map[string]bool{}
	for _, use := range t.work.Use {
		others[path.Clean(use.Path)] = true
	}
	for _, folder := range published {
		if !others[folder] {
			return nil, fmt.Errorf("go.work does not use %s", folder)
		}
		delete(others, folder)
		t.modules = append(t.modules, mod{folder: folder, published: true})
	}
	for _, use := range t.work.Use {
		if folder := path.Clean(use.Path); others[folder] {
			t.modules = append(t.modules, mod{folder: folder})
		}
	}
	t.modules = append(t.modules, apart...)
	for i := range t.modules {
		file, err := t.goMod(t.modules[i])
		if err != nil {
			return nil, err
		}
		t.modules[i].path = file.Module.Mod.Path
	}
	return t, t.agree()
}

// agree sets the version that the modules require of each other, and fails if there are several.
func (t *tree) agree() error {
	for _, m := range t.modules {
		file, err := t.goMod(m)
		if err != nil {
			return err
		}
		if len(file.Replace) > 0 && m.published {
			return fmt.Errorf("%s/go.mod replaces a module: go install would refuse it", m.folder)
		}
		for _, r := range file.Require {
			if !t.own(r.Mod.Path) {
				continue
			}
			if t.version == "" {
				t.version = r.Mod.Version
			}
			if r.Mod.Version != t.version {
				return fmt.Errorf("%s/go.mod requires %s, others require %s", m.folder, r.Mod, t.version)
			}
		}
	}
	if err := t.agreesWith("go.work", t.work); err != nil {
		return err
	}
	for _, m := range apart {
		name, work, err := t.workOf(m.folder)
		if err != nil {
			return err
		}
		if err := t.agreesWith(name, work); err != nil {
			return err
		}
	}
	if t.version == "" {
		return fmt.Errorf("no module requires another")
	}
	return nil
}

// agreesWith fails if a go.work replaces another version than that which the modules require of each other.
func (t *tree) agreesWith(name string, work *modfile.WorkFile) error {
	for _, r := range work.Replace {
		if t.own(r.Old.Path) && r.Old.Version != t.version {
			return fmt.Errorf("%s replaces %s, the modules require %s", name, r.Old, t.version)
		}
	}
	return nil
}

// workOf returns the go.work of a module that has its own, and its name.
func (t *tree) workOf(folder string) (name string, work *modfile.WorkFile, err error) {
	name = path.Join(folder, "go.work")
	text, err := os.ReadFile(t.join(name))
	if err != nil {
		return "", nil, err
	}
	work, err = modfile.ParseWork(name, text, nil)
	return name, work, err
}

// own reports whether a path is that of a module of the repository.
func (t *tree) own(path string) bool {
	for _, m := range t.modules {
		if m.path == path {
			return true
		}
	}
	return false
}

func (t *tree) join(elements ...string) string {
	return filepath.Join(append([]string{t.folder}, elements...)...)
}

func (t *tree) goMod(m mod) (*modfile.File, error) {
	name := t.join(m.folder, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, text, nil)
}

// files returns the names of all files that a commit of the tree would hold, with slashes: what git
// tracks or would, and without git everything but bin.
func (t *tree) files() (names []string, err error) {
	if list, err := command(t.folder, nil, "git", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard"); err == nil {
		for _, name := range strings.Split(strings.TrimSuffix(list, "\x00"), "\x00") {
			if _, err := os.Lstat(t.join(name)); err == nil { // or it is deleted
				names = append(names, name)
			}
		}
		return names, nil
	}
	err = filepath.WalkDir(t.folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(t.folder, name)
		if err != nil {
			return err
		}
		if entry.IsDir() && (below == "bin" || below == ".git") {
			return filepath.SkipDir
		}
		if entry.Type().IsRegular() {
			names = append(names, filepath.ToSlash(below))
		}
		return nil
	})
	return names, err
}

// at returns what a version of the module is called by the go command.
func (m mod) at(version string) module.Version { return module.Version{Path: m.path, Version: version} }
