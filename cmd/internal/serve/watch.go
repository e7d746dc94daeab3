package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/weir-go/weir/cmd/internal/debounce"
	"github.com/weir-go/weir/cmd/internal/listen"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/internal/openfile"
	"github.com/weir-go/weir/limits/quotas"
)

// watch reloads when the rule file, a certificate or a file of limits has changed, until ctx ends.
//
// The watcher watches folders and not files, because editors replace files, and Kubernetes replaces a link next to the
// file. It compares the contents of the files, because most changes in a folder concern other files.
func (s *Server) watch(ctx context.Context) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		s.config.Log.Warn("the rule file is not watched: reload it by SIGHUP", "err", err)
		return
	}
	defer watcher.Close()
	s.watchAgain(watcher)
	lastSum := s.life.loadedSum
	changes := debounce.New()
	defer changes.Stop()
	changes.Changed() // the file may have changed since it was loaded
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-watcher.Errors:
			s.config.Log.Warn("watching the rule file", "err", err)
			changes.Changed() // changes may have been missed
		case <-watcher.Events:
			changes.Changed()
		case <-changes.C:
			changes.Fired()
			if current := fingerprint(s.watchAgain(watcher)); current != lastSum {
				lastSum = current
				_ = s.Reload() // Reload has logged the error
				s.watchAgain(watcher)
			}
		}
	}
}

// watchAgain watches the folders in which the files are now, and returns the files.
func (s *Server) watchAgain(watcher *fsnotify.Watcher) []string {
	files := filesOf(s.current.Load().file)
	for _, file := range files {
		directories := []string{filepath.Dir(file)}
		if target, err := filepath.EvalSymlinks(file); err == nil {
			directories = append(directories, filepath.Dir(target))
		}
		for _, d := range directories {
			if err := watcher.Add(d); err != nil {
				s.config.Log.Warn("a directory is not watched: reload by SIGHUP when it changes", "directory", d, "err", err)
			}
		}
	}
	return files
}

// filesOf returns the rule file and the files that it names. They have certificates, passwords, tokens and quotas.
func filesOf(f *rulefile.File) []string {
	files := []string{f.Name}
	for _, e := range endpoints(f) {
		if c := e.Certificate; c != (listen.Certificate{}) {
			files = append(files, c.CertFile, c.KeyFile)
		}
	}
	if f.Redis != nil && f.Redis.PasswordFile != "" {
		files = append(files, f.Redis.PasswordFile)
	}
	if a := f.Admin; a != nil {
		for _, name := range []string{a.TokenFile, a.ReadTokenFile} {
			if name != "" {
				files = append(files, name)
			}
		}
	}
	for i := range f.Rules {
		if q := f.Rules[i].Quota; q != nil && q.File != "" {
			files = append(files, q.File)
		}
	}
	return files
}

type sum [sha256.Size]byte

// fingerprint returns a hash of the contents of the given files. A file that cannot be read counts as special content.
// A pipe or a device is not read, because its next reader would miss the data.
func fingerprint(files []string) sum {
	combined := sha256.New()
	for _, name := range files {
		fileHash := sha256.New()
		if file, _, err := openfile.Regular(name); errors.Is(err, fs.ErrNotExist) {
			_, _ = io.WriteString(fileHash, "missing") // writing to a hash never fails
		} else if err != nil {
			_, _ = io.WriteString(fileHash, "no file")
		} else {
			_, _ = io.Copy(fileHash, io.LimitReader(file, quotas.MaxBytes+1)) // a failed read also changes the sum
			_ = file.Close()
		}
		combined.Write(fileHash.Sum(nil))
	}
	return sum(combined.Sum(nil))
}
