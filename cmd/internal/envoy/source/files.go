// Package source reads the configuration of the service: from files, which it watches, or from xDS.
package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// MaxConfig is the largest size, 16 MiB, of a file and of an xDS response with all rules.
const MaxConfig = 16 << 20

// Read compiles a single file, or all files below a directory, whatever their extensions. It skips names that begin
// with a dot, such as the folders that Kubernetes uses to replace a volume. It also returns the warnings. If the files
// could be read, an error is of type [yamlfile.Errors].
func Read(path string, options config.Options) (*config.Config, []*yamlfile.Error, error) {
	names, err := listFiles(path)
	if err != nil {
		return nil, nil, err
	}
	var documents []*config.Document
	var warnings []*yamlfile.Error
	var mistakes yamlfile.Errors
	for _, name := range names {
		text, err := readFile(name)
		if err != nil {
			return nil, nil, err
		}
		document, err := config.Parse(name, text)
		if err != nil {
			mistakes = append(mistakes, err.(yamlfile.Errors)...)
			continue
		}
		documents = append(documents, document)
		warnings = append(warnings, document.Warnings...)
	}
	compiled, err := config.Compile(documents, options)
	if err != nil {
		mistakes = append(mistakes, err.(yamlfile.Errors)...)
	}
	if len(mistakes) > 0 {
		return nil, warnings, mistakes
	}
	return compiled, warnings, nil
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxConfig {
		return nil, fmt.Errorf("%s: %d bytes: want at most %d", name, info.Size(), MaxConfig)
	}
	return os.ReadFile(name)
}

func listFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	// WalkDir does not follow links, so links in the root are resolved first. Errors have the name that the operator
	// gave.
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	var names []string
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != root && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
		case !isDir(name, entry):
			if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // a read from a pipe would block
				return fmt.Errorf("%s: want a regular file, got %s", name, info.Mode())
			}
			names = append(names, filepath.Join(path, strings.TrimPrefix(name, root)))
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func isDir(name string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func fingerprint(path string) string {
	names, err := listFiles(path)
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, name := range names {
		text, err := readFile(name)
		fmt.Fprintf(&b, "%q %q %v\n", name, text, err)
	}
	return b.String()
}
