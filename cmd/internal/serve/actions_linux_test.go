package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/actions"
)

// TestActionsOutliveTheProcess: with a state folder, actions survive a restart, and also apply in a concurrent process.
// Without one, they end with the process.
func TestActionsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	file := "state: " + dir + "\n" + behind + one
	first := start(t, file)
	first.act(200, "ban", `"network":"192.0.2.7"`)
	first.act(200, "ban", `"rule":"default","parts":["192.0.2.8"]`)
	beside := start(t, file)
	again := start(t, file) // the first server has not ended, as after kill -9
	for _, s := range []*running{beside, again} {
		assert.Equal(t, "403", s.statuses(1, from("192.0.2.7")))
		assert.Equal(t, "403", s.statuses(1, from("192.0.2.8")))
	}
	status, _ := again.askAdmin("/actions/end", `{"id":1,"who":"bob"}`)
	require.Equal(t, 200, status)
	beside.actions.Refresh()
	assert.Equal(t, "200", beside.statuses(1, from("192.0.2.7")))
	again.clock.advance(time.Hour)
	assert.Equal(t, "200", again.statuses(1, from("192.0.2.8")))

	beside.change(behind + one)
	assert.Equal(t, "403", beside.statuses(1, from("192.0.2.8")), "a reload without state keeps them in memory")
	assert.Equal(t, "200", start(t, behind+one).statuses(1, from("192.0.2.8")))
}

// TestADamagedFileOfActions: if the file of actions is damaged, weir does not start, because it would run without its
// bans. A reload with a damaged file changes nothing.
func TestADamagedFileOfActions(t *testing.T) {
	dir := t.TempDir()
	s := start(t, behind+one)
	s.act(200, "ban", `"network":"192.0.2.7"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, actions.FileName), []byte("{"), 0o600))
	s.write("state: " + dir + "\n" + behind + one)
	require.ErrorContains(t, s.Reload(), "state: the actions: "+filepath.Join(dir, actions.FileName))
	assert.Equal(t, "403", s.statuses(1, from("192.0.2.7")))
	s.write("state: " + filepath.Join(dir, "none") + "\nadmin: {address: \"127.0.0.1:0\"}\nrules: [{name: a, rate: 0.5/s}]\n")
	require.Error(t, s.Reload())
	s.act(200, "ban", `"network":"192.0.2.8"`)
}
