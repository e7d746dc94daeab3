package engine

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/testrace"
)

// TestEveryCourseOfChangesOfASharedTable (I1) is TestEveryCourseOfChanges for a shared file, with shorter sequences.
func TestEveryCourseOfChangesOfASharedTable(t *testing.T) {
	testrace.OneGoroutine(t)
	second := courseStep{"a second", by((*model).passes, 0, 1, 3)}
	for _, c := range []courseKind{
		{"tiers", 0, []courseStep{takesAll(1), takesOne(2), setsTo(1, 1000, 11*time.Millisecond), setsTo(1, 10, 10*time.Second),
			setsTo(2, 3, 11*time.Millisecond), second, {"a sweep", (*model).sweeps}}, 3, false},
		{"one rate", 3, []courseStep{takesAll(3), takesOne(0), setsPaceTo(modelRates[1]), setsPaceTo(modelRates[3]), second}, 3, false},
		{"batches", 4, []courseStep{takesAll(7), takesOne(1), setsPaceTo(modelBatches[1]), setsPaceTo(modelBatches[2]), second}, 3, false},
		{"fixed window", 5, []courseStep{takesAll(5), takesOne(1), setsPaceTo(Policy{window: 25 * time.Second}), setsPaceTo(Policy{window: 3 * time.Second}), second}, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder, files := t.TempDir(), 0
			walksCourses(t, c, func() []Option {
				files++
				return []Option{Shared(filepath.Join(folder, fmt.Sprint(files)))}
			})
		})
	}
}
