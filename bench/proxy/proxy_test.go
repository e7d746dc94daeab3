package proxy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/bench/proxy/server"
)

func TestCheckCountsAnswers(t *testing.T) {
	round := func(requests, refused, failed int64) Round {
		return Round{Load: Load{Requests: requests, Refused: refused, Failed: failed}}
	}
	for name, c := range map[string]struct {
		round Round
		mode  server.Mode
		want  string
	}{
		"all admitted":      {round(5000, 0, 0), server.With, ""},
		"one refused":       {round(5000, 1, 0), server.With, "1 of 5000 requests were refused: want none"},
		"an error without":  {round(5000, 2, 0), server.Without, "2 of 5000 requests were refused: want none"},
		"broken":            {round(5000, 0, 3), server.Without, "3 of 5000 requests failed"},
		"silence":           {round(0, 0, 0), server.Refuse, "no request was answered"},
		"the first of each": {round(5000, 4000, 0), server.Refuse, ""},
		"some not counted":  {round(5000, 4032, 0), server.Refuse, ""},
		"one too many": {round(5000, 3999, 0), server.Refuse,
			"1001 of 5000 requests were admitted: want 968 to 1000"},
		"too few":              {round(5000, 4033, 0), server.Refuse, "967 of 5000 requests were admitted: want 968 to 1000"},
		"fewer than clients":   {round(500, 0, 0), server.Refuse, "500 of 500 requests were admitted: want 968 to 1000"},
		"refused and failures": {round(5000, 4000, 1), server.Refuse, "1 of 5000 requests failed"},
	} {
		err := c.round.check(c.mode)
		if c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, c.want, name)
		}
	}
}

// aRun returns a run in which the median of the ratios, 0.9, is not the ratio of the medians.
func aRun() *Run {
	rounds := func(perSecond ...float64) (rs []Round) {
		for _, p := range perSecond {
			rs = append(rs, Round{
				Load: Load{Requests: 1000, PerSecond: p, P50: time.Millisecond, P99: time.Duration(p) * time.Microsecond},
				CPU:  time.Duration(p) * time.Microsecond,
			})
		}
		return rs
	}
	weir := server.Weir("weir")
	refuse := rounds(2000, 4000, 3000)
	for i := range refuse {
		refuse[i].Refused = 500
	}
	bare := server.Bare("bare")
	return &Run{Rounds: 3, Seconds: 1, Rows: []Row{
		{weir, server.Without, rounds(1000, 2000, 4000)},
		{weir, server.With, rounds(900, 2400, 2000)},
		{weir, server.Refuse, refuse},
		{bare, server.Without, rounds(2000, 2000, 2000)},
	}, Turns: []Row{
		{weir, server.Without, rounds(1000, 2000)},
		{weir, server.With, rounds(800, 2000)},
		{bare, server.Without, rounds(2000, 2000)},
	}}
}

func TestTextComparesRoundByRound(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Text(&b, aRun()))
	assert.Contains(t, b.String(), "3 rounds of 1 s and 2 turns of 1 s, wrk -t1 -c32, 1000 clients in turn")
	assert.Regexp(t, `weir +2000 +2000 +0\.900 +0\.500 - 1\.200 +2\.0 us +2\.0 us +-0\.1 us`, b.String())
	assert.Regexp(t, `weir +1000\.0 us +1000\.0 us +2000\.0 us +2000\.0 us +0\.90 +0\.50 - 1\.20`, b.String())
	assert.Regexp(t, `weir +1500 +1000 - 2000 +0\.5000 `, b.String(), "half of the answers are refusals")
	assert.Contains(t, b.String(), "CPU a request  by that of httputil.ReverseProxy")
	assert.Regexp(t, `weir +without +1500 +1\.5 us +0\.75 +0\.50 - 1\.00\n`, b.String(), "1 and 2 ms of processor time")
	assert.Regexp(t, `weir +with +1400 +1\.4 us +0\.70 +0\.40 - 1\.00\n`, b.String())
	for _, verdict := range []string{
		"requests/s of weir with/without 0.900, want at least 0.97: undecided, fewer than 6 turns tell nothing",
		"processor time of weir/httputil.ReverseProxy 0.700, want at most 1.05: undecided, fewer than 6 turns tell nothing",
		"processor time of weir/Caddy reverse_proxy: not measured",
	} {
		assert.Contains(t, b.String(), "\ntarget: "+verdict+"\n")
	}
}

func TestReadReturnsEveryRound(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, aRun().Write(&b))
	text := b.String()
	back, err := Read(&b)
	require.NoError(t, err)
	require.Len(t, back.Rows, 4)
	for i, row := range aRun().Rows {
		assert.Equal(t, row.Rounds, back.Rows[i].Rounds)
		assert.Equal(t, row.Mode, back.Rows[i].Mode)
		assert.Equal(t, row.Server.Name, back.Rows[i].Server.Name)
	}
	require.Len(t, back.Turns, 3)
	for i, row := range aRun().Turns {
		assert.Equal(t, row.Rounds, back.Turns[i].Rounds)
	}
	_, err = Read(strings.NewReader("{"))
	assert.ErrorContains(t, err, "not a run's JSON: ")
	_, err = Read(strings.NewReader(strings.Replace(text, `"rounds": 3`, `"rounds": 4`, 1)))
	assert.EqualError(t, err, "row 1 of 4 has no server, or not 4 rounds")
	fewer := aRun()
	fewer.Turns[2].Rounds = fewer.Turns[2].Rounds[:1]
	b.Reset()
	require.NoError(t, fewer.Write(&b))
	_, err = Read(&b)
	assert.EqualError(t, err, "row 3 of 3 that took turns has no server, or another number of turns")
}

// TestDocument: the document has the terminal's lines, and the page of results has the lines of the document.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks/proxy.md")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "proxy.md")
	require.NoError(t, os.WriteFile(path, page, 0o600))
	require.NoError(t, Document(path, aRun()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{
		"\n| weir | with | 1400 | 1.4 us | 0.70 | 0.40 - 1.00 |\n",
		"\n| httputil.ReverseProxy | without | 2000 | 2.0 us | 1.00 | 1.00 - 1.00 |\n",
		"\n| weir | 2000 | 2000 | 0.900 | 0.500 - 1.200 | 2.0 us | 2.0 us | -0.1 us |\n",
		"\n| weir | 1500 | 1000 - 2000 | 0.5000 | ",
		"\n- target: requests/s of weir with/without 0.900, ",
	} {
		assert.Contains(t, string(text), want)
	}
}

func TestPlan(t *testing.T) {
	servers := []*server.Server{server.Weir("weir"), server.WeirSilent("weir")}
	rounds, turns := Schedule{Servers: servers, Rounds: 2, Seconds: 1, Turns: 3}.Steps()
	assert.Equal(t, [2]int{10, 6}, [2]int{rounds, turns}, "weir with and without its limiter takes turns")
	for want, p := range map[string]Schedule{
		"0 rounds: want 1 to 1000":     {Rounds: 0, Seconds: 1, Turns: 1},
		"1001 rounds: want 1 to 1000":  {Rounds: 1001, Seconds: 1, Turns: 1},
		"0 seconds: want 1 to 30":      {Rounds: 1, Seconds: 0, Turns: 1},
		"31 seconds: want 1 to 30":     {Rounds: 1, Seconds: 31, Turns: 1},
		"0 turns: want 1 to 10000":     {Rounds: 1, Seconds: 30, Turns: 0},
		"10001 turns: want 1 to 10000": {Rounds: 1, Seconds: 30, Turns: 10001},
	} {
		assert.EqualError(t, p.Check(), want)
		_, err := p.Do(t.Context(), "", nil)
		assert.EqualError(t, err, want)
	}
	assert.NoError(t, Schedule{Rounds: 1000, Seconds: 30, Turns: 10000}.Check())
}
