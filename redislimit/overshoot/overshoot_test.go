package overshoot_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/redislimit"
	"github.com/weir-go/weir/redislimit/overshoot"
)

// The tests start the test program itself as the command of a node.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "node" {
		if err := overshoot.Node(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func server(t *testing.T) *overshoot.Server {
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") == "" {
		t.Skip("there is no redis-server on the PATH: make test installs it; on Debian: apt-get install redis-server")
	}
	s, err := overshoot.StartServer(context.Background(), "redis-server")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestTwoNodesForHalfASecond(t *testing.T) {
	s := server(t)
	scenario := overshoot.Scenario{
		Name: "small", Rate: 1000, Burst: 100, Offered: 4000, Shares: overshoot.Even(2), Time: 500 * time.Millisecond,
	}
	var results []overshoot.Result
	for _, way := range overshoot.Ways() {
		r, err := overshoot.Run(t.Context(), s, scenario, way, os.Args[0], "node")
		require.NoError(t, err, way)
		assert.EqualValues(t, 2000, r.Offered, way)
		assert.GreaterOrEqual(t, r.Admitted, int64(100), way)
		assert.Positive(t, r.Calls, way)
		assert.Zero(t, r.Errors, way)
		assert.True(t, r.Holds(), "%s: %d admitted, at most %d promised", way, r.Admitted, r.Bound)
		assert.Equal(t, way == "strict" || way == "lease", r.Bound > 0)
		results = append(results, r)
	}
	var table bytes.Buffer
	require.NoError(t, overshoot.Markdown(&table, results))
	assert.Equal(t, 2+len(results), strings.Count(table.String(), "\n"))
}

// TestDisturbances checks that the bound holds while nodes cannot reach the server.
func TestDisturbances(t *testing.T) {
	s := server(t)
	for _, change := range []func(*overshoot.Scenario){
		func(s *overshoot.Scenario) { s.Stall, s.StallEvery = 60*time.Millisecond, 200*time.Millisecond },
		func(s *overshoot.Scenario) { s.CutOff = 1 },
	} {
		scenario := overshoot.Scenario{
			Name: "disturbed", Rate: 500, Burst: 50, Offered: 1500, Shares: overshoot.Even(2), Time: time.Second,
		}
		change(&scenario)
		for _, way := range []string{"strict", "lease"} {
			r, err := overshoot.Run(t.Context(), s, scenario, way, os.Args[0], "node")
			require.NoError(t, err)
			assert.Zero(t, r.Errors, r.Error)
			assert.True(t, r.Holds(), "%s: %d admitted, at most %d promised", way, r.Admitted, r.Bound)
			if way == "strict" {
				assert.Positive(t, r.Lost, "the shares decided")
			}
		}
	}
}

func TestABrokenBoundIsShown(t *testing.T) {
	r := overshoot.Result{Admitted: 11, Bound: 10}
	assert.False(t, r.Holds())
	var table bytes.Buffer
	require.NoError(t, overshoot.Markdown(&table, []overshoot.Result{r}))
	assert.Contains(t, table.String(), "| 10 BROKEN |")
}

func TestAWrongWayIsNamed(t *testing.T) {
	for way, want := range map[string]string{"settle x": "want one of", "other 10ms": "want one of", "other": "want one of"} {
		in := strings.NewReader(fmt.Sprintf(`{"scenario":{"rate":1000,"burst":100,"shares":[1]},"way":%q}`+"\n", way))
		assert.ErrorContains(t, overshoot.Node(t.Context(), in, &bytes.Buffer{}), want)
	}
}

// The test only prints the cost, because other programs share the machine.
func TestCost(t *testing.T) {
	s := server(t)
	store, err := redislimit.Open(t.Context(), "redis://"+s.Address, redislimit.Timeout(10*time.Second))
	require.NoError(t, err)
	defer store.Close()
	c, err := overshoot.MeasureCost(t.Context(), store, 5)
	require.NoError(t, err)
	t.Logf("with tokens in hand %.1f ns, engine %.1f ns: ratio %.2f (%.2f to %.2f)", c.Lease, c.Engine, c.Ratio, c.Least, c.Most)
	assert.LessOrEqual(t, c.Least, c.Ratio)
	assert.Less(t, c.Least, 10.0, "something is very wrong")
}
