package serve

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// stated returns a rule file with a state folder. Its rule is like the rule in the constant named one.
func stated(dir, more string) string {
	return fmt.Sprintf("state: %s\nrules: [{name: default, key: global, rate: 1/h, burst: 5, max_keys: 100%s}]\n", dir, more)
}

// TestARestartHandsOutNoFreshBucket: servers with the same state folder use the same buckets, after a restart and at
// the same time. With another rule or another folder, the buckets are full.
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

// TestOtherNumbersKeepTheState: if the numbers of a rule change, tokens that were used still count. Another server with
// the same file follows the change.
func TestOtherNumbersKeepTheState(t *testing.T) {
	dir := t.TempDir()
	numbers := func(burst int) string {
		return fmt.Sprintf("state: %s\nrules: [{name: default, key: global, rate: 1/h, burst: %d}]\n", dir, burst)
	}
	old := start(t, numbers(4))
	assert.Equal(t, "200 200", old.statuses(2))
	first := start(t, numbers(8)) // two tokens are taken
	assert.Equal(t, "200 200", first.statuses(2))
	first.stop()
	second := start(t, numbers(4)) // now all four are taken
	assert.Equal(t, "429", old.statuses(1))
	second.write(numbers(5))
	require.NoError(t, second.Reload())
	assert.Equal(t, "200 429", second.statuses(2), "no fresh bucket")
	assert.Equal(t, "429", old.statuses(1))
	files, err := filepath.Glob(filepath.Join(dir, "default-*.weir"))
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

// TestAMonthOutlivesARestart: servers with one state folder share calendar limits, including limits on tokens of a
// model.
func TestAMonthOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	monthly := func(limit int, zone string) string {
		return fmt.Sprintf("state: %s\nrules: [{name: a, key: global, rate: %d/month, algorithm: fixed-window, zone: %s, max_keys: 100}]\n",
			dir, limit, zone)
	}
	first := start(t, monthly(5, "Europe/Berlin")) // 1 January 2026, 01:00 in Berlin
	beside := start(t, monthly(5, "Europe/Berlin"))
	assert.Equal(t, "200 200", first.statuses(2))
	assert.Equal(t, "200", beside.statuses(1))
	first.stop()
	again := start(t, monthly(5, "Europe/Berlin"))
	assert.Equal(t, "200 200 429", again.statuses(3))
	again.change(monthly(6, "Europe/Berlin"))
	assert.Equal(t, "200", beside.statuses(1), "other numbers are those of all")
	assert.Equal(t, "429", again.statuses(1))
	for _, s := range []*running{again, beside} {
		s.clock.advance(31*24*time.Hour - time.Hour)
	}
	assert.Equal(t, "200 200 200 200 200", again.statuses(5))
	assert.Equal(t, "200 429", beside.statuses(2))
	again.change(monthly(6, "Asia/Tokyo"))
	assert.Equal(t, "200", again.statuses(1), "another zone is another rule")
	assert.Contains(t, again.log.String(), "rule a: starts over with full buckets, because its file was ")
	assert.Equal(t, "429", beside.statuses(1))
}

// TestStateThatCannotBeHad: if a state file cannot be used, the error names the rule and the file.
func TestStateThatCannotBeHad(t *testing.T) {
	s := start(t, one)
	s.write(stated(filepath.Join(t.TempDir(), "none"), ""))
	assert.ErrorContains(t, s.Reload(), "there is no folder")
	s.write(stated("here", ""))
	assert.ErrorContains(t, s.Reload(), "want the full path of a folder")
	s.write("state: /dev/shm\nrules: [{name: default, rate: 1/h, algorithm: sliding-log}]")
	assert.ErrorContains(t, s.Reload(), "rule default counts by a sliding log")
}

// TestTheLogSaysWhatAStateHas: for each state file, the log says whether it is new, and how many keys and processes it
// has. The log also names files that belong to no rule.
func TestTheLogSaysWhatAStateHas(t *testing.T) {
	dir := t.TempDir()
	first := start(t, stated(dir, ""))
	files, err := filepath.Glob(filepath.Join(dir, "default-*.weir"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	assert.Contains(t, first.log.String(), `msg="state: begun" rule=default file=`+files[0]+" indebted=0 processes=1\n")
	assert.NotContains(t, first.log.String(), "no rule has")
	assert.Equal(t, "200", first.statuses(1))
	beside := start(t, stated(dir, ""))
	assert.Contains(t, beside.log.String(), `msg="state: found" rule=default file=`+files[0]+" indebted=1 processes=2\n")

	unused := []string{filepath.Join(dir, "api-1.v1.weir"), filepath.Join(dir, "default-0123456789abcdef.v1.weir")}
	for _, path := range append(unused, filepath.Join(dir, "notes")) {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	other := start(t, stated(dir, ", overflow: refuse"))
	assert.Contains(t, other.log.String(),
		`msg="state: these files belong to no rule; weir does not remove them" files="`+strings.Join(append(unused, files[0]), " ")+"\"\n")
	for _, path := range append(unused, files[0]) {
		assert.FileExists(t, path)
	}
}

// TestAStateOfAnotherLayout: if weir cannot read the layout of a state file, it keeps the file and creates another
// file. It logs this.
func TestAStateOfAnotherLayout(t *testing.T) {
	dir := t.TempDir()
	assert.Equal(t, "200", start(t, stated(dir, "")).statuses(1))
	files, err := filepath.Glob(filepath.Join(dir, "default-*.weir"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	other := regexp.MustCompile(`\.v\d+\.weir$`).ReplaceAllString(files[0], ".v0.weir")
	require.NotEqual(t, files[0], other)
	require.NoError(t, os.Rename(files[0], other))

	s := start(t, stated(dir, ""))
	assert.Contains(t, s.log.String(), `level=WARN msg="state: the previous file has the layout of another version of weir: `+
		`every bucket is full" rule=default file=`+files[0]+" other="+other+"\n")
	assert.Equal(t, "200 200 200 200 200 429", s.statuses(6))
	assert.FileExists(t, other)
}

func numbered(dir string, burst int, more string) string {
	return fmt.Sprintf("state: %s\nrules:\n- {name: default, key: global, rate: 1/h, burst: %d, max_keys: 100}\n%s", dir, burst, more)
}

// TestTheServerThatWasReloadedLastDecides: if servers share a state file, the server that was reloaded last sets the
// limits. This is true even if its rule file did not change.
func TestTheServerThatWasReloadedLastDecides(t *testing.T) {
	dir := t.TempDir()
	first := start(t, numbered(dir, 2, ""))
	second := start(t, numbered(dir, 100, ""))
	assert.Equal(t, "200 200 200", first.statuses(3))
	require.NoError(t, first.Reload())
	assert.Contains(t, first.log.String(), "reload: rule default: token bucket 1/h burst 2, was token bucket 1/h burst 100; "+
		"the tokens that a key has used still count, and what exceeds a lower limit must come back first")
	assert.Equal(t, "429", second.statuses(1), "three are taken, of two")
	require.NoError(t, first.Reload())
	assert.Equal(t, 1, strings.Count(first.log.String(), "reload: rule default"), "nothing is left to change")
}

// TestNumbersOfAServerThatFails: if a start or a reload fails, the limits in state files stay. This is true even if
// another server has changed them.
func TestNumbersOfAServerThatFails(t *testing.T) {
	dir := t.TempDir()
	first := start(t, numbered(dir, 4, ""))
	second := start(t, numbered(dir, 100, ""))
	first.path = filepath.Join(t.TempDir(), "weir.yaml") // not the file that the server watches
	first.write(numbered(dir, 1, "- {name: broken, rate: 1/h, max_keys: 100}\n"))
	file, err := rulefile.Load(first.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file.Rules[1].State, []byte("no table"), 0o600))

	_, err = Start(Config{File: file, Log: slog.New(slog.DiscardHandler), LimiterOptions: second.config.LimiterOptions})
	require.ErrorContains(t, err, "rule broken:")
	assert.Equal(t, "200 200 200 200 200", second.statuses(5))
	require.ErrorContains(t, first.Reload(), "rule broken:")
	assert.Equal(t, "200 200 200 200 200", second.statuses(5))
}

// TestServersWithOtherTiersDoNotMixThemUp: a state file stores tiers by their order. If the order changes, the rule
// gets another file, and the log says so.
func TestServersWithOtherTiersDoNotMixThemUp(t *testing.T) {
	dir := t.TempDir()
	tiers := func(values string) string {
		return stated(dir, ", tiers: {header: X-Plan, values: {"+values+"}}")
	}
	const gold, free = "gold: {rate: 1/h, burst: 100}", "free: {rate: 1/h, burst: 1}"
	first := start(t, tiers(gold+", "+free))
	former := first.current.Load().file.Rules[0].State
	second := start(t, tiers(free+", "+gold))
	assert.Equal(t, "200 429", first.statuses(2, "X-Plan: free"))
	const anew = "state: a rule of this name has counted in another file, with a different key, algorithm, list " +
		"of tiers, quota, period, zone or rules of the zone, max_keys, longest or overflow: every bucket is full"
	assert.NotContains(t, first.log.String(), anew)
	assert.Contains(t, second.log.String(), `level=WARN msg="`+anew+`" rule=default file=`+
		second.current.Load().file.Rules[0].State+" other="+former+"\n")

	first.change(tiers(free + ", " + gold))
	assert.Contains(t, first.log.String(), `reload: rule default: starts over with full buckets, because the tiers with limits `+
		`were [\"gold\" \"free\"] and are [\"free\" \"gold\"], in this order`)
}

// TestWhatBecomesOfTheFilesIsLogged: the log reports each change of limits by another process once, and each loss of a
// file once. It also reports the end of each.
func TestWhatBecomesOfTheFilesIsLogged(t *testing.T) {
	dir, seen := t.TempDir(), map[string]loggedState{}
	numbers := func(burst int) string {
		return fmt.Sprintf("state: %s\nrules: [{name: default, key: global, rate: 1/h, burst: %d, max_keys: 100}]\n", dir, burst)
	}
	s := start(t, numbers(4))
	looks := func() {
		s.current.Load().limiters["default"].Limiter.Sweep()
		s.checkStates(seen)
		s.checkStates(seen)
	}
	looks()
	assert.NotContains(t, s.log.String(), "another process has changed")
	other := start(t, numbers(8))
	looks()
	assert.Equal(t, 1, strings.Count(s.log.String(), "another process has changed the limits in the file"))
	assert.Contains(t, s.log.String(), "burst 8")
	other.write(numbers(4))
	require.NoError(t, other.Reload())
	looks()
	assert.Equal(t, 1, strings.Count(s.log.String(), "are those of the rule file again"))

	file := s.current.Load().file.Rules[0].State
	require.NoError(t, os.Rename(file, file+".old"))
	looks()
	assert.Equal(t, 1, strings.Count(s.log.String(), "from now on its processes and new ones count separately"))
	require.NoError(t, os.Rename(file+".old", file))
	looks()
	assert.Equal(t, 1, strings.Count(s.log.String(), "the file is at its path again"))
}
