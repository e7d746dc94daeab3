package engine

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// TestEveryCourseOfChangesOfASharedTable (I1): short sequences of changes in a shared file.
func TestEveryCourseOfChangesOfASharedTable(t *testing.T) {
	folder, files := t.TempDir(), 0
	walksCourses(t, courseKind{"shared", 0, []courseStep{
		takesAll(1), takesOne(2), setsTo(1, 1000, 11*time.Millisecond), setsTo(1, 10, 10*time.Second),
		setsTo(2, 3, 11*time.Millisecond), {"a second", by((*model).passes, 0, 1, 3)}, {"a sweep", (*model).sweeps},
	}, 3}, func() []Option {
		files++
		return []Option{Shared(filepath.Join(folder, fmt.Sprint(files)))}
	})
}
