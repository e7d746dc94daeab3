package source

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// A Sink takes what a source finds: a configuration, or why there is none. It returns that error, or why the
// configuration cannot be used.
type Sink func(c *config.Config, warnings []*yamlfile.Error, err error) error

// settle is how long files must stay as they are before they are read: who writes a file writes it in pieces.
const settle = 100 * time.Millisecond

// longest is how long a change may wait for the files to settle: a file that is written to all the time must not keep
// the others from being read.
const longest = 2 * time.Second

// Watch reads the directory at once, and again whenever a file in it changes or a link on the way to it is
// swapped, until the context ends. It returns an error if it cannot watch.
func Watch(ctx context.Context, directory string, options config.Options, sink Sink) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	watched := map[string]bool{}
	watchAll(watcher, directory, watched)
	last := fingerprint(directory)
	_ = sink(Read(directory, options))

	changed := time.NewTimer(0)
	if !changed.Stop() {
		<-changed.C
	}
	defer changed.Stop()
	var since time.Time // of the first event that has not been looked at; zero if there is none
	event := func() {
		if since.IsZero() {
			since = time.Now()
		}
		changed.Reset(min(settle, time.Until(since.Add(longest))))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Errors: // events may be lost: look again
			event()
		case <-watcher.Events:
			event()
		case <-changed.C:
			since = time.Time{}
			watchAll(watcher, directory, watched)
			if now := fingerprint(directory); now != last {
				last = now
				_ = sink(Read(directory, options))
			}
		}
	}
}

// watchAll watches the directory, the folders in it, and the folder of each link on the way to it. What cannot be
// watched because it is not there is tried again after the next event.
func watchAll(watcher *fsnotify.Watcher, directory string, watched map[string]bool) {
	wanted := map[string]bool{}
	want := func(name string) {
		wanted[name] = true
		if watcher.Add(name) == nil {
			watched[name] = true
		}
	}
	for name := filepath.Clean(directory); ; name = filepath.Dir(name) {
		if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			want(filepath.Dir(name))
		}
		if name == filepath.Dir(name) {
			break
		}
	}
	if root, err := filepath.EvalSymlinks(directory); err == nil {
		_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				want(name)
			}
			return nil
		})
	}
	for name := range watched {
		if !wanted[name] {
			_ = watcher.Remove(name)
			delete(watched, name)
		}
	}
}
