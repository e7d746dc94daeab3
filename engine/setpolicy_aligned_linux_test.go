//go:build linux

package engine

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAlignedWindowsOfAFileWhoseLengthChanges (I1): the first window of a key after a change of the length lasts at
// least a complete window.
func TestAlignedWindowsOfAFileWhoseLengthChanges(t *testing.T) {
	for name, opens := range map[string]func(k *changingKey) (path string){
		"another process": func(k *changingKey) string { return k.path },
		"a copy": func(k *changingKey) string {
			path := filepath.Join(t.TempDir(), "copy")
			require.NoError(t, CopyShared(k.path, path))
			return path
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newChangingKey(t, true)
			k.takesAt(0)
			k.passes(1)
			k.takes.Sweep()
			k.changes()
			k.takes = k.made(61*time.Second, append(k.options, Shared(opens(k)))...)
			for _, at := range []int{1, 2, 63, 64} {
				k.takesAt(at)
			}
			assert.Len(t, k.grants, 3*changingLimit)
			k.requireFits(name)
		})
	}
}
