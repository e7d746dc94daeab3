package quotas

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/engine"
)

// A Live has the current [Table] of a source, and replaces it when the source has changed. Its methods are safe for
// concurrent use.
type Live struct {
	table   atomic.Pointer[Table]
	reading sync.Mutex
	read    Source
}

// A Source reads a table, or returns nil if nothing has changed. A [Live] does not call it concurrently.
type Source func(context.Context) (*Table, error)

// Open returns a Live with its first table, or the error of the source.
func Open(ctx context.Context, read Source) (*Live, error) {
	l := &Live{read: read}
	t, err := read(ctx)
	if err != nil {
		return nil, err
	}
	l.table.Store(t)
	return l, nil
}

// Table returns the current table.
func (l *Live) Table() *Table { return l.table.Load() }

// Of returns the policy of a key: see [Table.Of].
func (l *Live) Of(key string) (engine.Policy, bool) { return l.table.Load().Of(key) }

// Follow keeps the table current: it reads the table at each interval until ctx is done. After an error the current
// table stays. The function report gets each different table and each different error. When reading succeeds after an
// error, it gets the current table again.
func (l *Live) Follow(ctx context.Context, interval time.Duration, report func(*Table, error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		t, isNew, err := l.reread(ctx)
		text := ""
		if err != nil {
			text = err.Error()
		}
		switch {
		case ctx.Err() != nil:
			return
		case isNew || text != last:
			report(t, err)
		}
		last = text
	}
}

func (l *Live) reread(ctx context.Context) (t *Table, isNew bool, err error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	current := l.table.Load()
	t, err = l.read(ctx)
	switch {
	case err != nil:
		return nil, false, err
	case t == nil || t.sum == current.sum && t.keys == current.keys:
		return current, false, nil
	}
	l.table.Store(t)
	return t, true, nil
}

// A FileReader reads a file when it has changed. It is not for concurrent use.
type FileReader struct {
	last fs.FileInfo // nil if the file must be read
	err  error
}

// Read reads the file by [Reader.File] if its identity, size or time has changed. Otherwise it returns a nil Table and
// the last error.
func (f *FileReader) Read(r Reader, name string) (*Table, error) {
	info, err := os.Stat(name)
	if err != nil {
		f.last = nil
		return nil, err
	}
	if f.last != nil && os.SameFile(f.last, info) && f.last.Size() == info.Size() && f.last.ModTime().Equal(info.ModTime()) {
		return nil, f.err
	}
	if f.last = info; time.Since(info.ModTime()) < unsettled {
		f.last = nil // a later change may have the same time stamp
	}
	t, err := r.File(name)
	f.err = err
	return t, err
}

// unsettled is longer than the resolution of the time stamps of any file system.
const unsettled = 3 * time.Second
