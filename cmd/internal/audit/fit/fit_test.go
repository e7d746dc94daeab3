package fit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limitertest/check"
)

// TestSeveralNumbersExplainALog: a token is taken one millisecond early, which is within the tolerance of the times. So
// a bucket of five tokens explains the log, and so does a bucket of six.
func TestSeveralNumbersExplainALog(t *testing.T) {
	var log []Request
	ask := func(at time.Duration, allowed bool) {
		log = append(log, Request{Sent: time.Hour + at, Done: time.Hour + at + 200*time.Microsecond, Allowed: allowed})
	}
	for i := range 5 {
		ask(time.Duration(i)*10*time.Microsecond, true)
	}
	for i := time.Duration(1); i < 30; i++ {
		ask(i*time.Second-time.Millisecond, true)
		ask(i*time.Second-time.Millisecond/2, false)
	}
	r, err := Log(log, 0)
	require.NoError(t, err)
	assert.Equal(t, check.Bucket, r.Limit.Kind)
	assert.Zero(t, r.Misfits)
	assert.Equal(t, [2]uint64{5, 6}, [2]uint64{r.Fewest, r.Most}, "%+v", r)
}

// TestWindowsThatARequestBegins: a window passes without a request. The next request then begins a window, even if it
// comes less than two periods after the request before it.
func TestWindowsThatARequestBegins(t *testing.T) {
	at := Limit{Phase: Anchored, Limit: check.Limit{Per: 10}}.Clock()
	var times []time.Duration
	for _, d := range []time.Duration{103, 109, 121, 139, 142, 159} {
		times = append(times, at("", d))
	}
	assert.Equal(t, []time.Duration{100, 106, 118, 130, 133, 150}, times)
}

// TestSeveralPeriodsExplainALog: aligned windows of many lengths make the same decisions about the log's bursts.
func TestSeveralPeriodsExplainALog(t *testing.T) {
	var log []Request
	for i := range time.Duration(10) {
		for n := range time.Duration(16) {
			at := time.Hour + i*6*time.Second + n*time.Millisecond
			log = append(log, Request{Sent: at, Done: at + time.Millisecond, Allowed: n < 15})
		}
	}
	f := newFitter(log, 0)
	best := candidate{limit: Limit{Kind: check.AlignedWindow}, misfits: 1000}
	of := &searcher{fitter: f, best: &best}
	of.phasedWindow([]candidate{{limit: Limit{Limit: check.Limit{Tokens: 15, Per: 6 * time.Second, Burst: 15}}}})
	shortest, longest := of.periodBounds()
	assert.Zero(t, best.misfits)
	assert.LessOrEqual(t, shortest, 500*time.Millisecond)
	assert.Equal(t, 6*time.Second, longest)
}
