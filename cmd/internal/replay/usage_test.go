package replay

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/usagelog"
	"github.com/weir-go/weir/engine"
)

func tokensOf(t *testing.T, policy engine.Policy, estimates []Estimate, lines ...string) *UsageReport {
	t.Helper()
	path := filepath.Join(t.TempDir(), "usage")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	log, err := usagelog.Read([]string{path}, usagelog.Options{})
	require.NoError(t, err)
	r, err := NewUsage(log, false)
	require.NoError(t, err)
	require.NoError(t, r.Try(policy, estimates))
	return r
}

// TestEstimatesOfALog: each estimate has the results that were computed by hand. A key has 100 tokens and gets none
// back. Its second request comes while the first is in progress. Its third comes after both.
func TestEstimatesOfALog(t *testing.T) {
	lines := []string{
		`{"time":1795165200,"duration_ms":10000,"team":"a","model":"m","usage":{"input_tokens":10,"output_tokens":20}}`,
		`{"time":1795165201,"duration_ms":10000,"team":"a","model":"m","usage":{"input_tokens":40,"output_tokens":40}}`,
		`{"time":1795165220,"duration_ms":10000,"team":"a","model":"m","usage":{"input_tokens":5,"output_tokens":5}}`,
		`{"time":1795165221,"duration_ms":10000,"team":"b","model":"m","usage":{"input_tokens":300,"output_tokens":50}}`,
	}
	policy := engine.FixedWindow(100, time.Hour)
	for _, c := range []struct {
		estimate         string
		allowed, refused uint64
		admitted         uint64
		beyond, unused   uint64
		lost             uint64
	}{
		// A request holds as many tokens as it will cost. Requests of 30 and 10 tokens fit, and one of 80 does not. The
		// other key's request of 350 tokens holds 100, which is the limit. The other 250 tokens are lost.
		{"learned", 3, 1, 390, 250, 0, 250},
		// Each request holds 60 tokens. The second does not fit. The third fits after the first is settled. The other
		// key's request costs 290 tokens more than it holds. Of these, 40 are charged and 250 are lost.
		{"60", 3, 1, 390, 290, 80, 250},
		// Each request holds 1 token, so the first two fit. They cost 30 and 80 tokens, which is 10 more than the key
		// has. These 10 are lost, and nothing is left for the third.
		{"none", 3, 1, 460, 457, 0, 260},
	} {
		t.Run(c.estimate, func(t *testing.T) {
			e, err := ParseEstimate(c.estimate)
			require.NoError(t, err)
			assert.Equal(t, c.estimate, e.String())
			r := tokensOf(t, policy, []Estimate{e}, lines...)
			got := r.Estimates[0]
			assert.Equal(t, c.allowed, got.Allowed)
			assert.Equal(t, c.refused, got.Refused)
			assert.Equal(t, c.admitted, got.Admitted)
			assert.Equal(t, r.Tokens-c.admitted, got.Rejected)
			assert.Equal(t, c.beyond, got.Beyond)
			assert.Equal(t, c.unused, got.Unused)
			assert.Equal(t, c.lost, got.Lost)
			assert.Equal(t, []Key{{"a", 3, 1}}, got.RefusedKeys)
		})
	}
}

// TestLearnedFromALog: from the 21st request of a model on, "learned" holds 1.2 times a certain cost. It is the cost
// that 95 of 100 requests of the model do not exceed.
func TestLearnedFromALog(t *testing.T) {
	var lines []string
	for i := range 30 {
		lines = append(lines, `{"time":`+time.Unix(1795165200+int64(i), 0).UTC().Format(`"2006-01-02T15:04:05Z"`)+`,"duration_ms":100,"usage":{"input_tokens":90,"output_tokens":10}}`)
	}
	r := tokensOf(t, engine.FixedWindow(1_000_000, time.Hour), []Estimate{{Learned: true}}, lines...)
	// Each power of two has four buckets, in which costs are counted. A cost of 100 is in the bucket that ends at 111,
	// and 1.2 times 111 is 133.
	assert.EqualValues(t, 10*(133-100), r.Estimates[0].Unused)
	assert.Zero(t, r.Estimates[0].Beyond)
	assert.Equal(t, "everybody", r.Names[0])
	assert.Len(t, r.Notes(), 2)
}

// TestEstimatesThatAreNone: an invalid estimate is an error. The estimate "worst" is impossible, and the error says
// why.
func TestEstimatesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"worst": "which a usage log does not have", "0": "from 1 to 1000000000", "-1": "want learned", "1000000001": "from 1", "": "want learned", "1.5": "want",
	} {
		_, err := ParseEstimate(text)
		assert.ErrorContains(t, err, want, text)
	}
}

// TestUsageOutput: the table and the JSON have the same results, and say what is unknown.
func TestUsageOutput(t *testing.T) {
	log, err := usagelog.Read([]string{"../usagelog/testdata/openai.json"}, usagelog.Options{})
	require.NoError(t, err)
	r, err := NewUsage(log, true)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	assert.EqualValues(t, 5, r.Trace.Requests)
	require.NoError(t, r.Try(engine.FixedWindow(800, time.Hour), nil))
	var text, out bytes.Buffer
	require.NoError(t, r.WriteTable(&text, 1))
	require.NoError(t, r.WriteJSON(&out, nil))
	assert.Equal(t, `requests              5
tokens            1,510
keys                  2  by project_id
out of order          0
lines skipped         0

from 2025-11-20 00:00:00 UTC to 2025-11-20 00:00:45 UTC (45s)

estimate   allowed   refused     share  tokens allowed   refused  beyond holds  held too much  keys refused
learned          3         2   40.00 %             760       750             0              0             1
302              3         2   40.00 %             760       750           146            292             1
none             4         1   20.00 %           1,135       375         1,131              0             1

none: 325 tokens are not charged, because a key already owes the maximum

learned: most refused  requests   refused     share
proj_a                        4         2   50.00 %

302: most refused  requests   refused     share
proj_a                    4         2   50.00 %

none: most refused  requests   refused     share
proj_a                     4         1   25.00 %

5 requests are known only as sums: each counts as the mean, evenly spread over the time
of its sum. Real ones come in bursts, and a limit refuses more of them.
learned: the first 20 requests for a model hold what they cost: the worst case is in no log.
`, text.String())
	var got struct {
		Tokens    uint64
		Keys      uint64
		KeyField  string `json:"key_field"`
		Sums      uint64 `json:"requests_of_sums"`
		Estimates []struct {
			Estimate string
			Refused  uint64
			Beyond   uint64    `json:"tokens_beyond_holds"`
			Lost     uint64    `json:"tokens_lost"`
			Keys     []jsonKey `json:"refused_keys"`
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.EqualValues(t, 1510, got.Tokens)
	assert.Equal(t, "project_id", got.KeyField)
	assert.EqualValues(t, 5, got.Sums)
	require.Len(t, got.Estimates, 3)
	assert.EqualValues(t, 146, got.Estimates[1].Beyond)
	assert.EqualValues(t, 325, got.Estimates[2].Lost)
	assert.Equal(t, []jsonKey{{"proj_a", 4, 2}}, got.Estimates[0].Keys)
}
