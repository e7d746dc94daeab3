package source

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/weir-go/weir/cmd/internal/debounce"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// A Sink receives a configuration, or an error that says why there is none. It returns the error that it received. If
// the configuration cannot be used, it returns an error that says why.
type Sink func(c *config.Config, warnings []*yamlfile.Error, err error) error

// Watch reads the directory at once. Until the context ends, it reads the directory again after each change of a file
// in it, or of a link in its path. It returns an error if the directory cannot be watched.
func Watch(ctx context.Context, directory string, options config.Options, sink Sink) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	watched := map[string]bool{}
	watchAll(watcher, directory, watched)
	lastFingerprint := fingerprint(directory)
	_ = sink(Read(directory, options))

	debouncer := debounce.New()
	defer debouncer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Errors: // events may be lost, so read the directory again
			debouncer.Changed()
		case <-watcher.Events:
			debouncer.Changed()
		case <-debouncer.C:
			debouncer.Fired()
			watchAll(watcher, directory, watched)
			if current := fingerprint(directory); current != lastFingerprint {
				lastFingerprint = current
				_ = sink(Read(directory, options))
			}
		}
	}
}

// watchAll watches the directory, the folders in it, and the folder of each link in its path. If one of them is
// missing, it tries again after the next event.
func watchAll(watcher *fsnotify.Watcher, directory string, watched map[string]bool) {
	needed := map[string]bool{}
	watch := func(name string) {
		needed[name] = true
		if watcher.Add(name) == nil {
			watched[name] = true
		}
	}
	for name := filepath.Clean(directory); ; name = filepath.Dir(name) {
		if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			watch(filepath.Dir(name))
		}
		if name == filepath.Dir(name) {
			break
		}
	}
	if root, err := filepath.EvalSymlinks(directory); err == nil {
		_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				watch(name)
			}
			return nil
		})
	}
	for name := range watched {
		if !needed[name] {
			_ = watcher.Remove(name)
			delete(watched, name)
		}
	}
}
