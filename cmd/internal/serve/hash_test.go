package serve

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// startHash starts a server with a rule whose limits are in a hash, which the server reads every second.
func startHash(t *testing.T, store *miniredis.Miniredis, quota string) *running {
	t.Helper()
	return start(t, hashFile(store.Addr(), quota))
}

func hashFile(address, quota string) string {
	return "store: {url: \"redis://" + address + "\", timeout: 2s}\nrules: [{name: a, rate: 1/h, store: false, key: header:X-Key, max_keys: 100, " +
		"quota: {hash: plans, every: 1s, plans: {free: {rate: 2/h}, paid: {rate: 5/h}}" + quota + "}}]\n"
}

// TestAHashOfLimits: if a hash changes, the new limits soon apply, and tokens that were used still count. A hash with a
// mistake changes nothing.
func TestAHashOfLimits(t *testing.T) {
	store := miniredis.RunT(t)
	store.HSet("plans", "anna", "free", "berta", "paid", "carl", "3/h,4", "dora", "unlimited")
	s := startHash(t, store, "")
	assert.Contains(t, s.log.String(), `from="the hash plans" keys=4 different=4`)
	assert.Equal(t, 2, passed(s, "anna", 9))
	assert.Equal(t, 5, passed(s, "berta", 9))
	assert.Equal(t, 4, passed(s, "carl", 9))
	assert.Equal(t, 9, passed(s, "dora", 9))
	assert.Equal(t, 1, passed(s, "emil", 9))

	store.HSet("plans", "anna", "gold")
	s.waitFor("limits not read: the previous ones stay active")
	assert.Contains(t, s.log.String(), `\"gold\": want the name of a plan`)
	store.HSet("plans", "anna", "paid", "emil", "free")
	s.waitFor("keys=5")
	assert.Equal(t, 3, passed(s, "anna", 9), "two of five were used")
	assert.Equal(t, 1, passed(s, "emil", 9), "one of two was used")
	store.Del("plans")
	s.waitFor("it has no keys")
	assert.Equal(t, 9, passed(s, "dora", 9))
}

// TestAHashThatIsLost: if a hash is lost, its last limits stay active. They also survive a reload that reads the hash
// in the same way. Without the hash, no server can start, and no reload can change how the hash is read.
func TestAHashThatIsLost(t *testing.T) {
	store := startStore(t)
	store.HSet("plans", "anna", "paid")
	address := store.Addr()
	s := startHash(t, store, "")
	store.Close()
	s.waitFor("limits not read: the previous ones stay active")
	assert.Equal(t, 5, passed(s, "anna", 9))
	assert.Equal(t, 1, strings.Count(s.log.String(), "limits read"), "what is read once is said once")
	s.change(hashFile(address, "") + "headers: none\n")
	assert.Equal(t, 0, passed(s, "anna", 1))
	assert.Equal(t, 1, passed(s, "berta", 9))
	s.change(strings.Replace(hashFile(address, ""), "every: 1s", "every: 2s", 1))
	assert.Equal(t, 0, passed(s, "anna", 1))
	assert.Equal(t, 1, strings.Count(s.log.String(), "limits read"), "reloads could not read it")
	s.write(hashFile(address, ", unknown: refuse"))
	require.ErrorContains(t, s.Reload(), "hash plans: ")
	file, err := rulefile.Load(s.path)
	require.NoError(t, err)
	_, err = Start(Config{File: file, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "store: ")

	require.NoError(t, store.Restart())
	store.HSet("plans", "anna", "6/h")
	require.Eventually(t, func() bool { return passed(s, "anna", 1) == 1 }, time.Minute, 10*time.Millisecond)
}

// TestAStoredRuleKeepsItsLimits: if a hash has a mistake at a reload, a rule in the store keeps its limits. The
// previous generation does not stay in memory.
func TestAStoredRuleKeepsItsLimits(t *testing.T) {
	store := miniredis.RunT(t)
	store.HSet("plans", "anna", "paid", "berta", "free")
	inStore := func(quota string) string {
		return strings.Replace(hashFile(store.Addr(), quota), "store: false, ", "", 1)
	}
	s := start(t, inStore(""))
	assert.Equal(t, 5, passed(s, "anna", 9))
	first := weak.Make(s.current.Load())
	store.HSet("plans", "anna", "gold")
	s.waitFor("limits not read: the previous ones stay active")
	s.change(inStore("") + "headers: none\n")
	assert.Equal(t, 0, passed(s, "anna", 1))
	assert.Equal(t, 2, passed(s, "berta", 9))
	require.Eventually(t, func() bool { runtime.GC(); return first.Value() == nil }, time.Minute, 10*time.Millisecond)
	for _, quota := range []string{", max: 7", ", unknown: refuse"} {
		s.write(inStore(quota))
		assert.ErrorContains(t, s.Reload(), "hash plans: ", quota)
	}
}

// TestTheLogSaysHowFarAHashIs: the log reports the progress of reading a hash. A mistake in the hash ends the reading.
func TestTheLogSaysHowFarAHashIs(t *testing.T) {
	clock, said := newClock(), []int{}
	bad := errors.New("bad")
	read := progress(func(_ context.Context, name string, yield func(field, value string) error) error {
		assert.Equal(t, "plans", name)
		for {
			clock.advance(4 * time.Millisecond)
			if err := yield("anna", "free"); err != nil {
				return err
			}
		}
	}, clock.now, func(fields int) { said = append(said, fields) })
	n := 0
	assert.Equal(t, bad, read(t.Context(), "plans", func(field, value string) error {
		assert.Equal(t, "anna free", field+" "+value)
		if n++; n == 9000 {
			return bad
		}
		return nil
	}))
	assert.Equal(t, []int{3000, 6000, 9000}, said)
}
