package replay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/accesslog"
	"github.com/weir-go/weir/engine"
)

func sample() *Report {
	first := time.Date(2015, time.May, 17, 10, 5, 0, 0, time.FixedZone("", 2*3600))
	return &Report{
		Log: Log{
			Format:   "combined",
			Requests: 1234567, Keys: 1000,
			First: first, Last: first.Add(49*time.Hour + time.Second),
			Late: 3, MostLate: 59 * time.Second, Astray: 4,
			Skipped: 6, Reasons: []*accesslog.LineError{{Line: 2, Err: errors.New("bad")}, {Line: 70, Err: errors.New("worse")}},
		},
		Outcome: Outcome{
			Policy: engine.FixedWindow(10, time.Minute), Allowed: 1234000, Refused: 567, AsLogged: 123456,
			RefusedKeys: []Key{{"2001:db8::1", 600, 500}, {"192.0.2.1", 67, 60}, {"a.example", 700000, 7}},
		},
	}
}

func TestWriteTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, sample().WriteTable(&out, 2))
	assert.Equal(t, `requests       1,234,567
allowed        1,234,000   99.95 %
refused              567    0.05 %
keys               1,000
keys refused           3    0.30 %
out of order           3  by at most 59s, sorted
lines skipped          6  4 because their date is far from those around it

from 2015-05-17 08:05:00 UTC to 2015-05-19 09:05:01 UTC (2d 1h0m1s)

Sorting changes what is refused from 10.00 % (123,456) to 0.05 % (567) of the requests.

Skipped:
  line 2: bad
  line 70: worse
  and 4 more

most refused   requests    refused     share
2001:db8::1         600        500   83.33 %
192.0.2.1            67         60   89.55 %
`, out.String())
}

func TestWriteTableLeavesOutWhatIsNotThere(t *testing.T) {
	at := time.Date(2015, time.May, 17, 10, 5, 0, 0, time.UTC)
	var out strings.Builder
	require.NoError(t, (&Report{Log{Requests: 1, Keys: 1, First: at, Last: at},
		Outcome{Allowed: 1}}).WriteTable(&out, 10))
	assert.Equal(t, `requests              1
allowed               1  100.00 %
refused               0    0.00 %
keys                  1
keys refused          0    0.00 %
out of order          0
lines skipped         0

from 2015-05-17 10:05:00 UTC to 2015-05-17 10:05:00 UTC (0s)
`, out.String())
}

func TestWriteTableSaysThatItIsApproximate(t *testing.T) {
	r := sample()
	r.Evictions, r.ForgivenTokens = 12, 34
	var out strings.Builder
	require.NoError(t, r.WriteTable(&out, 0))
	assert.Contains(t, out.String(), r.EvictionNote())
	assert.Contains(t, r.EvictionNote(), "(12, short of 34 tokens)")
	assert.NotContains(t, out.String(), "most refused", "none was asked for")
}

func TestWriteJSON(t *testing.T) {
	var out strings.Builder
	require.NoError(t, sample().WriteJSON(&out))
	assert.Equal(t, `{"policy":"fixed window 10/1m0s","format":"combined","requests":1234567,"skipped":6,"out_of_order":3,"out_of_order_seconds":59,"far_dates":4,"keys":1000,"allowed":1234000,"refused":567,"refused_as_logged":123456,"refused_keys":[`+
		`{"key":"2001:db8::1","requests":600,"refused":500},`+
		`{"key":"192.0.2.1","requests":67,"refused":60},`+
		`{"key":"a.example","requests":700000,"refused":7}]}`+"\n", out.String())
}

func TestWriteJSONHasAnEmptyListForNone(t *testing.T) {
	var out strings.Builder
	require.NoError(t, (&Report{Log{Requests: 2, Keys: 1}, Outcome{Allowed: 2}}).WriteJSON(&out))
	assert.Equal(t, `{"policy":"no policy","format":"","requests":2,"skipped":0,"out_of_order":0,"out_of_order_seconds":0,"far_dates":0,"keys":1,"allowed":2,"refused":0,"refused_as_logged":0,"refused_keys":[]}`+"\n", out.String())
}

func sampleComparison() *Comparison {
	r := sample()
	r.Skipped, r.Astray, r.Reasons = 0, 0, nil
	approximate := Outcome{Policy: engine.SlidingWindow(10, time.Minute), Allowed: 1234567}
	return &Comparison{
		Log: r.Log, Limit: 10, Window: time.Minute,
		Outcomes: []Compared{
			{r.Outcome, 10, 26.67},
			{approximate, 0, 1234.5},
		},
		LeftOut: []LeftOut{{engine.SlidingLog(10, time.Minute), errors.New("engine: no room")}},
	}
}

func TestWriteComparisonTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, sampleComparison().WriteTable(&out))
	assert.Equal(t, `requests       1,234,567
keys               1,000
out of order           3  by at most 59s, sorted
lines skipped          0

from 2015-05-17 08:05:00 UTC to 2015-05-19 09:05:01 UTC (2d 1h0m1s)

policy                    allowed    refused     share  unsorted  keys refused  worst excess  bytes a key
fixed window 10/1m0s    1,234,000        567    0.05 %   123,456             3            10           27
sliding window 10/1m0s  1,234,567          0    0.00 %         0             0             0        1,235

worst excess: the most that one key got through within any 1m0s, less the limit of 10
unsorted: what is refused if the log is taken as it stands, each request at the latest time before it

Left out (a smaller --max-keys needs less memory):
  sliding log 10/1m0s: no room
`, out.String())
}

func TestWriteComparisonTableSaysThatItIsApproximate(t *testing.T) {
	c := sampleComparison()
	c.Outcomes[1].Evictions = 12
	var out strings.Builder
	require.NoError(t, c.WriteTable(&out))
	assert.Contains(t, out.String(), "\n"+c.Outcomes[1].EvictionNote()+"\n")
	assert.Equal(t, c.Outcomes[1].EvictionNote(), c.EvictionNote())
}

func TestWriteComparisonJSON(t *testing.T) {
	var out strings.Builder
	require.NoError(t, sampleComparison().WriteJSON(&out))
	assert.Equal(t, `{"format":"combined","requests":1234567,"skipped":0,"out_of_order":3,"out_of_order_seconds":59,"far_dates":0,"keys":1000,"limit":10,"window_seconds":60,"policies":[`+
		`{"policy":"fixed window 10/1m0s","allowed":1234000,"refused":567,"refused_as_logged":123456,"keys_refused":3,"worst_excess":10,"bytes_per_key":26.67},`+
		`{"policy":"sliding window 10/1m0s","allowed":1234567,"refused":0,"refused_as_logged":0,"keys_refused":0,"worst_excess":0,"bytes_per_key":1234.5}],`+
		`"left_out":[{"policy":"sliding log 10/1m0s","reason":"engine: no room"}]}`+"\n", out.String())
	out.Reset()
	require.NoError(t, (&Comparison{}).WriteJSON(&out))
	assert.Contains(t, out.String(), `"policies":[],"left_out":[]`)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWritersReportAFullDisk(t *testing.T) {
	assert.EqualError(t, sample().WriteTable(fullDisk{}, 10), "disk full")
	assert.EqualError(t, sample().WriteJSON(fullDisk{}), "disk full")
	assert.EqualError(t, sampleComparison().WriteTable(fullDisk{}), "disk full")
	assert.EqualError(t, sampleComparison().WriteJSON(fullDisk{}), "disk full")
}
