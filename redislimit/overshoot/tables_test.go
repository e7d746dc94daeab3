package overshoot

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tables have a row for each scenario, with the measured number, its bound, and the simulator's number.
func TestTables(t *testing.T) {
	plain := Scenario{Name: "plain", Rate: 1000, Burst: 200, Offered: 2000, Shares: Even(4), Time: time.Second}
	costly, differ, stalled, cut, other := plain, plain, plain, plain, plain
	costly.Name, costly.Costs = "costly", []uint64{1, 60}
	differ.Name, differ.Differ = "differ", true
	stalled.Name, stalled.Stall, stalled.StallEvery = "stalled", 60*time.Millisecond, 120*time.Millisecond
	cut.Name, cut.CutOff = "cut", 1
	other.Name = "other"
	results := []Result{
		{Scenario: plain, Way: "strict", Admitted: 1200, Bound: 1200, OfExact: 100, Calls: 1999},
		{Scenario: plain, Way: "lease", Admitted: 1190, Bound: 1232, OfExact: 99.17, Falsely: 0.5, Calls: 800, Late: 44 * time.Millisecond},
		{Scenario: plain, Way: "window 200ms", OfExact: 130},
		{Scenario: costly, Way: "lease", Admitted: 1300, Bound: 1232, OfExact: 108},
		{Scenario: differ, Way: "strict", OfExact: 100},
		{Scenario: stalled, Way: "strict", OfExact: 90, Late: time.Second},
		{Scenario: cut, Way: "strict", OfExact: 110},
		{Scenario: other, Way: "settle 10ms", OfExact: 101},
	}
	var text bytes.Buffer
	require.NoError(t, Tables(t.Context(), &text, results))
	lines := strings.Split(text.String(), "\n")
	row := func(name string) (cells []string) {
		for _, line := range lines {
			if strings.HasPrefix(line, "| "+name+" |") {
				cells = append(cells, line)
			}
		}
		return cells
	}
	number := `\(\d+\.\d\d\)`
	require.Len(t, row("plain"), 2, "%s", &text)
	assert.Regexp(t, `^\| plain \| 100.00 `+number+` \| 1200 <= 1200 \| 99.17 `+number+` \| 1190 <= 1232 \| 0.500 % \| 1999 \| 800 \|$`, row("plain")[0])
	assert.Equal(t, "| plain | 130.00 |  |  |  |  |  |", row("plain")[1])
	assert.Contains(t, row("costly")[0], "| 1300 > 1232 BROKEN |")
	assert.Regexp(t, `\| 108.00 `+number, row("costly")[0])
	assert.Contains(t, row("differ")[0], "| differ | 100.00 |", "the simulator has no such nodes")
	assert.Regexp(t, `not on time `+number, row("stalled")[0])
	assert.Regexp(t, `110.00 `+number, row("cut")[0])
	assert.Equal(t, []string{"| other |  |  |  |  |  | 101.00 |"}, row("other"), "settling later alone")
	assert.Contains(t, text.String(), "Requests came up to 1s after their time.")

	// The simulator must accept every scenario that is measured.
	for _, s := range Scenarios(200 * time.Millisecond) {
		if s.StallEvery+s.Stall <= s.Time {
			_, err := simulate(t.Context(), s)
			assert.NoError(t, err, s.Name)
		}
	}
}
