package replay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sample() *Report {
	first := time.Date(2015, time.May, 17, 10, 5, 0, 0, time.FixedZone("", 2*3600))
	return &Report{
		Requests: 1234567, Allowed: 1234000, Refused: 567, Keys: 1000,
		RefusedKeys: []Key{{"2001:db8::1", 600, 500}, {"192.0.2.1", 67, 60}, {"a.example", 700000, 7}},
		First:       first, Last: first.Add(49*time.Hour + time.Second),
		Late: 3, MostLate: 59 * time.Second,
		Skipped: 6, Reasons: []Reason{{2, errors.New("bad")}, {70, errors.New("worse")}},
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
out of order           3  by at most 59s
lines skipped          6

from 2015-05-17 08:05:00 UTC to 2015-05-19 09:05:01 UTC (2d 1h0m1s)

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
	require.NoError(t, (&Report{Requests: 1, Allowed: 1, Keys: 1, First: at, Last: at}).WriteTable(&out, 10))
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
	assert.Equal(t, `{"requests":1234567,"skipped":6,"keys":1000,"allowed":1234000,"refused":567,"refused_keys":[`+
		`{"key":"2001:db8::1","requests":600,"refused":500},`+
		`{"key":"192.0.2.1","requests":67,"refused":60},`+
		`{"key":"a.example","requests":700000,"refused":7}]}`+"\n", out.String())
}

func TestWriteJSONHasAnEmptyListForNone(t *testing.T) {
	var out strings.Builder
	require.NoError(t, (&Report{Requests: 2, Allowed: 2, Keys: 1}).WriteJSON(&out))
	assert.Equal(t, `{"requests":2,"skipped":0,"keys":1,"allowed":2,"refused":0,"refused_keys":[]}`+"\n", out.String())
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWritersReportAFullDisk(t *testing.T) {
	assert.EqualError(t, sample().WriteTable(fullDisk{}, 10), "disk full")
	assert.EqualError(t, sample().WriteJSON(fullDisk{}), "disk full")
}
