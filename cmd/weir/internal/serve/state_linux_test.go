package serve

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stated is the rule file of one with a folder for its state, and what else a rule says.
func stated(dir, more string) string {
	return fmt.Sprintf("state: %s\nrules: [{name: default, key: global, rate: 1/h, burst: 5, max_keys: 100%s}]\n", dir, more)
}

// TestARestartHandsOutNoFreshBucket: with state a server that is started again, and one beside it, go on with the
// buckets as they were; a rule of other numbers begins with full ones, and so does the same rule in another folder.
func TestARestartHandsOutNoFreshBucket(t *testing.T) {
	dir := t.TempDir()
	first := start(t, stated(dir, ""))
	assert.Equal(t, "200 200", first.statuses(2))
	beside := start(t, stated(dir, ""))
	assert.Equal(t, "200", beside.statuses(1))
	first.stop()
	again := start(t, stated(dir, ""))
	assert.Equal(t, "200 200 429", again.statuses(3))
	assert.Equal(t, "429", beside.statuses(1))

	beside.write(stated(dir, ", overflow: refuse"))
	require.NoError(t, beside.Reload())
	assert.Equal(t, "200", beside.statuses(1))
	beside.write(stated(dir, ""))
	require.NoError(t, beside.Reload())
	assert.Equal(t, "429", beside.statuses(1), "and back")
	assert.Equal(t, "200", start(t, stated(t.TempDir(), "")).statuses(1))

	files, err := filepath.Glob(filepath.Join(dir, "default-*.weir"))
	require.NoError(t, err)
	assert.Len(t, files, 2)
}

// TestStateThatCannotBeHad: the error of a server names the rule and the file.
func TestStateThatCannotBeHad(t *testing.T) {
	s := start(t, one)
	s.write(stated(filepath.Join(t.TempDir(), "none"), ""))
	assert.ErrorContains(t, s.Reload(), "there is no folder")
	s.write(stated("here", ""))
	assert.ErrorContains(t, s.Reload(), "want the full path of a folder")
	s.write("state: /dev/shm\nrules: [{name: default, rate: 1/h, algorithm: sliding-log}]")
	assert.ErrorContains(t, s.Reload(), "rule default counts by a sliding log")
}
