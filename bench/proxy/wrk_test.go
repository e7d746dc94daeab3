package proxy

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseRefusesWhatIsNotFromWrk(t *testing.T) {
	whole, err := os.ReadFile("testdata/admitted.txt")
	require.NoError(t, err)
	without := func(line string) string {
		require.Contains(t, string(whole), line)
		return strings.Replace(string(whole), line, "", 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"nothing":         {"", `wrk printed no number of requests: ""`},
		"an error":        {"unable to connect to 127.0.0.1:1 Connection refused\n", "wrk printed no number of requests"},
		"no rate":         {without("Requests/sec:"), "wrk printed no number of requests"},
		"no distribution": {without("     99%  "), "wrk printed no 50th, 90th and 99th percentile"},
		"too many": {strings.Replace(string(whole), " requests in ", "00000000000000000000 requests in ", 1),
			"requests of wrk"},
		"two points": {strings.Replace(string(whole), "Requests/sec: ", "Requests/sec: 1.1.", 1), "requests/s of wrk"},
	} {
		_, err := parseWrk(c.text)
		assert.ErrorContains(t, err, c.want, name)
	}
}

func TestParseReadsEveryUnit(t *testing.T) {
	r, err := parseWrk("  50%  812.00us\n  90%  1.25ms\n  99%  2.00s\n" +
		"  7 requests in 1.00m, 1KB read\nRequests/sec:  0.12\n")
	require.NoError(t, err)
	assert.Equal(t, Load{Requests: 7, PerSecond: 0.12, P50: 812 * time.Microsecond, P90: 1250 * time.Microsecond,
		P99: 2 * time.Second}, r)
}

func TestScriptNamesEveryClient(t *testing.T) {
	assert.Contains(t, clientScript(), fmt.Sprintf("for i = 1, %d do", clients))
	assert.Contains(t, clientScript(), fmt.Sprintf("n = n %% %d + 1", clients))
	assert.Contains(t, clientScript(), `["`+clientHeader+`"]`)
}

// TestParseReadsWhatWrkPrints: the outputs come from wrk 4.1.0 against an nginx that admits, answers 429, or closes
// connections.
func TestParseReadsWhatWrkPrints(t *testing.T) {
	for name, want := range map[string]Load{
		"admitted": {Requests: 102427, PerSecond: 102366.81, P50: 158 * time.Microsecond, P90: 298 * time.Microsecond,
			P99: 385 * time.Microsecond},
		"refused": {
			Requests: 110461, PerSecond: 100391.89, Refused: 110461,
			P50: 243 * time.Microsecond, P90: 305 * time.Microsecond, P99: 497 * time.Microsecond,
		},
		"broken": {Failed: 18630},
	} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		require.NoError(t, err)
		r, err := parseWrk(string(text))
		require.NoError(t, err, name)
		assert.Equal(t, want, r, name)
	}
}

func TestParseAddsFailuresOfEveryKind(t *testing.T) {
	text, err := os.ReadFile("testdata/broken.txt")
	require.NoError(t, err)
	const line = "connect 0, read 18630, write 0, timeout 0"
	require.Contains(t, string(text), line)
	r, err := parseWrk(strings.Replace(string(text), line, "connect 1, read 20, write 300, timeout 4000", 1))
	require.NoError(t, err)
	assert.Equal(t, int64(4321), r.Failed)
}
