package limitertest

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sweeping is a limiter with a goroutine that waits for a ticker until a finalizer ends it. Limiters without a method
// Close often have such a goroutine.
type sweeping struct {
	*bucket
	stop chan struct{}
}

func newSweeping(tb testing.TB, l Limit) Limiter {
	s := &sweeping{newBucket(l, ""), make(chan struct{})}
	stop := s.stop
	ticker := time.NewTicker(100 * time.Millisecond)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	tb.Cleanup(func() { stop <- struct{}{} })
	runtime.SetFinalizer(s, func(s *sweeping) { close(s.stop) }) // the finalizer would end the process if it ran
	return s
}

// TestPitfalls: finalizers that use a bubble's channel, and frequent tickers, neither end nor delay the test of a good
// limiter.
func TestPitfalls(t *testing.T) {
	if os.Getenv("LIMITERTEST_PITFALLS") != "" {
		Test(t, Config{Keys: 200, New: newSweeping, Limits: []Limit{{Tokens: 10, Per: time.Second, Burst: 20}, {Tokens: 5, Per: time.Minute, Burst: 3}}})
		for range 2 { // two, because the first may end before the last finalizer runs
			done := make(chan struct{})
			runtime.SetFinalizer(new([]byte), func(*[]byte) { close(done) })
			runtime.GC()
			<-done
		}
		return
	}
	run := exec.Command(os.Args[0], "-test.run", "^TestPitfalls$", "-test.v", "-test.short")
	run.Env = append(os.Environ(), "LIMITERTEST_PITFALLS=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "of fake time take")
	assert.Contains(t, string(out), "so a subtest waits for no more than")
	for _, name := range []string{"Burst", "Bound", "Conforming", "Forget", "Retry", "Clock", "Leak"} {
		assert.Contains(t, string(out), "PASS: TestPitfalls/"+name)
	}
}
