package stores

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseUse(t *testing.T) {
	u, err := parseUse("# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:9\r\n" +
		"cmdstat_get:calls=7,usec=8\r\ncmdstat_evalsha:calls=5,usec=90,usec_per_call=18.00\r\ncmdstat_eval:calls=2,usec=9\r\n")
	require.NoError(t, err)
	assert.Equal(t, use{scripts: 7, processor: 3750 * time.Millisecond}, u)
	_, err = parseUse("used_cpu_sys:many\r\n")
	assert.ErrorContains(t, err, "many")
}

func TestMiddle(t *testing.T) {
	r := middle([]Result{
		{Processor: 3, P50: 1, Admitted: 11, Bound: 10, PauseLongest: 5, HerdAnswered: 7, HerdTook: 1},
		{Processor: 1, P50: 2, Admitted: 9, Bound: 10, PauseLongest: 6, HerdAnswered: 9, HerdTook: 2},
		{Processor: 2, P50: 3, Admitted: 8, Bound: 10, PauseLongest: 4, HerdAnswered: 8, HerdTook: 3},
	})
	want := Result{Processor: 2, P50: 3, Admitted: 11, Bound: 10, PauseLongest: 6, HerdAnswered: 7, HerdTook: 3}
	assert.Equal(t, want, r)
}

// Every subject decides, and no subject admits more than a limit of its kind allows.
func TestRun(t *testing.T) {
	binary, err := exec.LookPath("redis-server")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no redis-server")
	}
	plan := Plan{Cost: 50 * time.Millisecond, Excess: 300 * time.Millisecond, Pause: 300 * time.Millisecond, Rounds: 1}
	results, err := Run(t.Context(), binary, plan, Subjects(), func(string) {})
	require.NoError(t, err)
	require.Len(t, results, len(Subjects()))
	for _, r := range results {
		assert.Positive(t, r.Decisions, r.Subject)
		assert.Positive(t, r.Admitted, r.Subject)
		assert.Positive(t, r.PauseAsked, r.Subject)
		assert.LessOrEqual(t, r.HerdAnswered, herd)
	}
	assert.Contains(t, Markdown(results), "| throttled |")
}
