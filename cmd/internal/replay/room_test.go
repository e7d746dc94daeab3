package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
)

// manyKeys writes a log with more keys than smallRoom, and two requests for each.
func manyKeys(t *testing.T) (path string, keys uint64) {
	t.Helper()
	var log strings.Builder
	keys = 2 * smallRoom
	for range 2 {
		for i := range keys {
			log.WriteString(line(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), 0))
		}
	}
	path = filepath.Join(t.TempDir(), "access.log")
	require.NoError(t, os.WriteFile(path, []byte(log.String()), 0o600))
	return path, keys
}

// TestRoomForKeys: if a log has more keys than smallRoom, it is replayed again with room for all keys, so that the
// figures are exact. For any other log, the first replay is enough.
func TestRoomForKeys(t *testing.T) {
	many, keys := manyKeys(t)
	few := filepath.Join(t.TempDir(), "few.log")
	require.NoError(t, os.WriteFile(few, []byte(line("a", 0)+line("a", 1)), 0o600))
	for path, want := range map[string][]int{many: {smallRoom, fullRoom}, few: {smallRoom}} {
		log, err := accesslog.Open([]string{path}, "")
		require.NoError(t, err)
		var rooms []int
		r, err := Run(engine.TokenBucket(engine.Per(1, time.Hour), 1), func(p engine.Policy, room int,
			more ...engine.Option) (*engine.Limiter, error) {
			rooms = append(rooms, room)
			return engine.New(p, append(more, engine.MaxKeys(min(room, 1_000_000)))...)
		}, log)
		require.NoError(t, err)
		require.NoError(t, log.Close())
		assert.Equal(t, want, rooms)
		assert.Equal(t, r.Requests/2, r.Refused)
		assert.Equal(t, r.Keys, uint64(len(r.RefusedKeys)))
		assert.Zero(t, r.Evictions)
	}

	f, err := rulefile.Parse("weir.yaml", []byte("rules: [{name: a, rate: 1/h, burst: 1}]"))
	require.NoError(t, err)
	log, err := accesslog.Open([]string{many}, "")
	require.NoError(t, err)
	defer log.Close()
	r, err := RunRules(f, RulesOptions{Trace: true}, log)
	require.NoError(t, err)
	defer r.Close()
	assert.Equal(t, []uint64{2 * keys, keys, keys, 0},
		[]uint64{r.Requests, r.Refused, r.Rules[0].Keys, r.Rules[0].Evictions})
	assert.Equal(t, 2*keys, r.Rules[0].Trace.Requests, "those of the first replay are gone")
}
