package main

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// A source is a file of a module's zip.
type source struct{ name, file string }

func (s source) Path() string                 { return s.name }
func (s source) Lstat() (os.FileInfo, error)  { return os.Lstat(s.file) }
func (s source) Open() (io.ReadCloser, error) { return os.Open(s.file) }

// pack writes the zip of a module as the go command would make it of a tag: the files below its
// folder but those of modules inside of it, and the licence of the repository if it has none.
func (t *tree) pack(w io.Writer, m mod, version string) error {
	names, err := t.files()
	if err != nil {
		return err
	}
	modules := map[string]bool{} // folders
	for _, name := range names {
		if path.Base(name) == "go.mod" {
			modules[path.Dir(name)] = true
		}
	}
	var files []zip.File
	licence := false
	for _, name := range names {
		folder := path.Dir(name)
		for !modules[folder] {
			folder = path.Dir(folder)
		}
		if folder != m.folder {
			continue
		}
		below := name
		if folder != "." {
			below = strings.TrimPrefix(name, folder+"/")
		}
		files = append(files, source{below, t.join(name)})
		licence = licence || below == "LICENSE"
	}
	if !licence {
		files = append(files, source{"LICENSE", t.join("LICENSE")})
	}
	return zip.Create(w, m.at(version), files)
}

// writeProxy writes a module proxy of files that has one version of every module that is
// published (https://go.dev/ref/mod#goproxy-protocol).
func (t *tree) writeProxy(folder, version string) error {
	for _, m := range t.modules {
		if !m.published {
			continue
		}
		if err := t.writeModule(folder, m, version); err != nil {
			return fmt.Errorf("%s: %w", m.at(version), err)
		}
	}
	return nil
}

func (t *tree) writeModule(proxy string, m mod, version string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	folder := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	goMod, err := os.ReadFile(t.join(m.folder, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version": %q}`, version),
		version + ".mod":  string(goMod),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return t.writeZip(filepath.Join(folder, version+".zip"), m, version)
}

func (t *tree) writeZip(name string, m mod, version string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := t.pack(file, m, version); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// sums returns the lines of go.sum for a version of a module.
func (t *tree) sums(m mod, version string) (string, error) {
	folder, err := os.MkdirTemp("", "weir-sums-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	name := filepath.Join(folder, "module.zip")
	if err := t.writeZip(name, m, version); err != nil {
		return "", err
	}
	all, err := dirhash.HashZip(name, dirhash.Hash1)
	if err != nil {
		return "", err
	}
	only, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(t.join(m.folder, "go.mod"))
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", m.path, version, all, only), nil
}
