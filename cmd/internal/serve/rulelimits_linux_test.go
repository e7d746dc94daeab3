package serve

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/internal/sharedfile"
)

// stateWords gives access to words in the file of a rule. Their places are those of shard/sharedplan.go and
// internal/sharedfile. A test writes what a stopped or killed process would leave there.
type stateWords struct {
	t *testing.T
	*os.File
}

const (
	changeAt  = sharedfile.HeaderBytes + 80
	settingAt = sharedfile.HeaderBytes + 88
	plansAt   = sharedfile.HeaderBytes + 4096
	planBytes = 1024
	seatsAt   = 8192
	seatBytes = 32
	seatBits  = 10
)

func wordsOf(t *testing.T, s *running, rule int) stateWords {
	t.Helper()
	f, err := os.OpenFile(s.current.Load().file.Rules[rule].State, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return stateWords{t, f}
}

func (w stateWords) get(at int64) uint64 {
	word := make([]byte, 8)
	_, err := w.ReadAt(word, at)
	require.NoError(w.t, err)
	return binary.NativeEndian.Uint64(word)
}

func (w stateWords) put(at int64, word uint64) {
	_, err := w.WriteAt(binary.NativeEndian.AppendUint64(nil, word), at)
	require.NoError(w.t, err)
}

// stop writes what a process leaves in the file if it stops just before it changes the policy. The parameter seat is
// the number of the process.
func (w stateWords) stop(seat uint64) {
	taken := w.get(seatsAt + int64(seat)*seatBytes)
	require.NotZero(w.t, taken)
	w.put(settingAt, taken<<seatBits|seat)
}

func policyIn(t *testing.T, s *running, rule int) string {
	t.Helper()
	policies := policiesIn(s.current.Load().file.Rules[rule].State)
	require.NotEmpty(t, policies)
	return policies[0].String()
}

// TestAReloadBesideAProcessThatIsStopped: another process is stopped while it changes the policy. A reload with another
// policy then fails, and the limits stay.
func TestAReloadBesideAProcessThatIsStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for five seconds, as a reload does")
	}
	dir := t.TempDir()
	s := start(t, numbered(dir, 2, ""))
	start(t, numbered(dir, 2, "")) // takes the next seat
	words := wordsOf(t, s, 0)
	words.stop(1)
	s.path = filepath.Join(t.TempDir(), "weir.yaml") // not the file that the server watches
	s.write(numbered(dir, 100, ""))
	err := s.Reload()
	assert.EqualError(t, err, "rule default: engine: the policy token bucket 1/h burst 100: another process has been about to "+
		"change the policy of the file for 5s: is it stopped?")
	assert.Contains(t, s.log.String(), "reload failed: everything stays as it was")
	assert.NotContains(t, s.log.String(), "anew")
	assert.Equal(t, "token bucket 1/h burst 2", policyIn(t, s, 0))
	words.put(settingAt, 0)
	require.NoError(t, s.Reload())
	assert.Equal(t, "token bucket 1/h burst 100", policyIn(t, s, 0))
}

// TestLimitsThatCannotBePutBack: if a failed reload cannot restore a limit, the error says which limit is active.
func TestLimitsThatCannotBePutBack(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for five seconds, as a reload does")
	}
	dir := t.TempDir()
	const changed = "token bucket 1/h burst 100"
	s := start(t, numbered(dir, 2, ""))
	start(t, numbered(dir, 2, "")) // takes the next seat
	words := wordsOf(t, s, 0)
	// The clock is read when the next rule's limiter is made.
	s.config.LimiterOptions = []engine.Option{engine.ClockFunc(func() time.Time {
		if words.get(settingAt) == 0 && policyIn(t, s, 0) == changed {
			words.stop(1)
		}
		return s.clock.now()
	})}
	s.path = filepath.Join(t.TempDir(), "weir.yaml") // not the file that the server watches
	s.write(numbered(dir, 100, "- {name: broken, rate: 1/h, max_keys: 100}\n"))
	file, err := rulefile.Load(s.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file.Rules[1].State, []byte("no table"), 0o600))
	err = s.Reload()
	require.ErrorContains(t, err, "rule broken:")
	require.ErrorContains(t, err, "rule default: the active limits are ["+changed+"], and the previous ones cannot be restored: engine: "+
		"the policy token bucket 1/h burst 2: another process")
	assert.Contains(t, s.log.String(), "reload failed: everything else stays as it was")
	assert.Equal(t, changed, policyIn(t, s, 0))
	words.put(settingAt, 0)
}

// TestWhatAKilledProcessHadAnnouncedIsPutBack: a process was killed after it had announced a change of limits. The
// change is undone even if no process has applied it.
func TestWhatAKilledProcessHadAnnouncedIsPutBack(t *testing.T) {
	s := start(t, numbered(t.TempDir(), 2, ""))
	words := wordsOf(t, s, 0)
	limits := s.stateLimits()
	const policyWords = 7
	for at := int64(0); at <= 2*policyWords; at++ { // plan 1 is the current plan; the next plan replaces plan 0
		word := words.get(plansAt + planBytes + 8*at)
		switch at {
		case 4, 7, 4 + policyWords, 7 + policyWords: // the limit and the room, of the base and of the policy
			require.EqualValues(t, 2, word)
			word = 100
		}
		words.put(plansAt+8*at, word)
	}
	words.put(changeAt, 2<<1|1)
	require.NoError(t, s.putBack(limits))
	s.current.Load().limiters["default"].Sweep()
	assert.Equal(t, "token bucket 1/h burst 2", policyIn(t, s, 0))
	require.Equal(t, uint64(3<<1), words.get(changeAt), "two changes")
}
