package usagelog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/usage"
)

// read reads a text as a log.
func read(t *testing.T, text string, o Options) (*Log, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "usage")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Read([]string{path}, o)
}

// TestRecords: a record costs what its usage says. The usage may be in the form of any API, or in members of the record
// itself. The record has its time, its key, its model and its duration under the usual names.
func TestRecords(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		line    string
		options Options
		want    Request
	}{
		"chat": {`{"time":"2026-11-20T09:00:00Z","team":"a","model":"m","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`,
			Options{}, Request{at, 0, "a", "m", 7}},
		"anthropic": {`{"timestamp":1795165200,"user":"a","usage":{"input_tokens":3,"cache_read_input_tokens":10,"output_tokens":4},"duration_ms":250}`,
			Options{}, Request{at, 250 * time.Millisecond, "a", "", 17}},
		"gemini": {`{"ts":1795165200000,"key":"k","team":"a","usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":7}}`,
			Options{}, Request{at, 0, "k", "", 7}},
		"beside the others": {`{"startTime":1795165200.0,"endTime":1795165201.5,"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"model":"m",` +
			`"metadata":{"user_api_key_team_alias":"a"}}`, Options{}, Request{at, 1500 * time.Millisecond, "a", "m", 7}},
		"microseconds": {`{"time":1795165200000000,"usage":{"input_tokens":1,"output_tokens":1}}`, Options{}, Request{at, 0, "everybody", "", 2}},
		"a path": {`{"created":1795165200,"who":{"is":{"it":12}},"user":"u","usage":{"input_tokens":1,"output_tokens":5}}`,
			Options{Key: "who.is.it", Counts: usage.OutputOnly}, Request{at, 0, "12", "", 5}},
		"a zone": {`{"time":"2026-11-20 10:00:00.000+01:00","usage":{"input_tokens":1,"output_tokens":5}}`,
			Options{Counts: usage.InputOnly}, Request{at, 0, "everybody", "", 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := read(t, c.line+"\n", c.options)
			require.NoError(t, err)
			require.Len(t, l.Requests, 1)
			assert.Equal(t, c.want, l.Requests[0])
			assert.Equal(t, "usage as lines of JSON", l.Format)
			assert.EqualValues(t, map[bool]int{true: 1}[c.want.Took == 0], l.Untimed)
		})
	}
}

// TestRecordsThatAreNone: if a line is not a record, it is skipped, counted, and reported with the reason. The key is
// in the same field for all records.
func TestRecordsThatAreNone(t *testing.T) {
	good := `{"time":"2026-11-20T09:00:0%Z","team":"a","user":"u","usage":{"input_tokens":1,"output_tokens":1}}` + "\n"
	text := strings.ReplaceAll(good, "%", "2") + `{"time":"2026-11-20T09:00:00Z","team":` + "\n" + `[1]` + "\n" + `{"usage":{"input_tokens":1}}` + "\n" +
		`{"time":"soon","usage":{"input_tokens":1}}` + "\n" + `{"time":-5,"usage":{"input_tokens":1}}` + "\n" + `{"time":1795165200}` + "\n" +
		`{"time":1795165200,"duration_ms":-1,"usage":{"input_tokens":1}}` + "\n" + "\n" +
		`{"time":1795165200,"usage":{"input_tokens":99999999999}}` + "\n" +
		`{"time":1795165200,"user":"u","usage":{"input_tokens":1}}` + "\n" + strings.ReplaceAll(good, "%", "1")
	l, err := read(t, text, Options{})
	require.NoError(t, err)
	assert.EqualValues(t, 8, l.Skipped)
	require.Len(t, l.Reasons, 5)
	for i, want := range []string{"line 2: no JSON", "line 3: not a JSON object", "line 4: no time", `line 5: the time "soon"`, `line 6: the time "-5"`} {
		assert.ErrorContains(t, l.Reasons[i], want)
	}
	require.Len(t, l.Requests, 3)
	assert.Equal(t, []string{"(none)", "a", "a"}, []string{l.Requests[0].Key, l.Requests[1].Key, l.Requests[2].Key})
	assert.EqualValues(t, 2, l.Late)
	assert.Equal(t, 2*time.Second, l.MostLate)
	assert.Equal(t, "team", l.Key)
}

// TestOpenAI: OpenAI's usage has sums, in the answers of the API and in the export of the dashboard. A sum gives
// requests of the mean cost that are evenly spread over the time of the sum.
func TestOpenAI(t *testing.T) {
	start := time.Unix(1763596800, 0).UTC()
	for _, name := range []string{"testdata/openai.json", "testdata/openai.csv"} {
		t.Run(name, func(t *testing.T) {
			l, err := Read([]string{name}, Options{})
			require.NoError(t, err)
			assert.Equal(t, "OpenAI's usage", l.Format)
			assert.Equal(t, "project_id", l.Key)
			assert.EqualValues(t, 5, l.Summed)
			assert.Zero(t, l.Skipped)
			assert.Zero(t, l.Untimed)
			want := []Request{{start, 0, "proj_a", "large", 375}, {start, 0, "proj_b", "small", 10}}
			for i := 1; i < 4; i++ {
				want = append(want, Request{start.Add(time.Duration(i) * 15 * time.Second), 0, "proj_a", "large", 375})
			}
			assert.Equal(t, want, l.Requests)
			l, err = Read([]string{name}, Options{Counts: usage.OutputOnly})
			require.NoError(t, err)
			assert.EqualValues(t, 125, l.Requests[0].Cost)
		})
	}
	l, err := read(t, `{"start_time":1763596800,"end_time":1763596860,"input_tokens":10,"output_tokens":0,"num_model_requests":3}`, Options{})
	require.NoError(t, err)
	assert.Equal(t, []uint64{4, 3, 3}, []uint64{l.Requests[0].Cost, l.Requests[1].Cost, l.Requests[2].Cost}, "nothing is lost")
	_, err = read(t, `{"start_time":1763596800,"input_tokens":10,"output_tokens":0,"num_model_requests":3}`, Options{})
	assert.ErrorContains(t, err, "want a start_time and a later end_time")
	_, err = read(t, `{"start_time":1763596800,"end_time":1763596860,"input_tokens":1,"num_model_requests":1000000000}`, Options{})
	assert.ErrorContains(t, err, "more than 20000000 requests")
}

// TestTables: the first line of a table has the names of its columns.
func TestTables(t *testing.T) {
	l, err := read(t, "timestamp;team;model;prompt_tokens;completion_tokens;total_tokens;note\n"+
		"2026-11-20 09:00:01;a;m;3;4;7;\"x;y\"\n2026-11-20 09:00:00;b;m;3;4;7;z\n1;2\n2026-11-20;c;m;;;;z\n", Options{})
	require.NoError(t, err)
	assert.Equal(t, "usage as a table", l.Format)
	require.Len(t, l.Requests, 2)
	assert.Equal(t, Request{time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), 0, "b", "m", 7}, l.Requests[0])
	require.Len(t, l.Reasons, 2)
	assert.ErrorContains(t, l.Reasons[0], "line 4: 2 columns, and the first line names 7")
	assert.ErrorContains(t, l.Reasons[1], "line 5: no known column of tokens")
}

// TestFilesThatAreNone: if a file is not a usage log, or has no usage, reading it returns an error.
func TestFilesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "the log is empty",
		"hello\n":                         "neither JSON nor a table",
		"{\n\"time\":":                    "no JSON at byte",
		`{"time":"2026-11-20"}`:           "none of its records has a usage",
		"{" + strings.Repeat(" ", 17<<20): "a line of more than 16 MiB",
	} {
		_, err := read(t, text, Options{})
		assert.ErrorContains(t, err, want, "%.20q", text)
	}
	_, err := Read([]string{"testdata/nothing"}, Options{})
	assert.ErrorContains(t, err, "testdata/nothing")
	l, err := Read([]string{"testdata/openai.json", "testdata/usage.jsonl"}, Options{})
	require.NoError(t, err)
	assert.Equal(t, "several formats", l.Format)
	assert.Len(t, l.Requests, 405)
}

// FuzzRead checks that the reader never panics or hangs, no matter what a file has.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"testdata/openai.json", "testdata/openai.csv"} {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"time":1795165200,"usage":{"input_tokens":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "usage")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		l, err := readUpTo([]string{path}, Options{}, 1000)
		if err != nil {
			return
		}
		for i := range l.Requests {
			q := &l.Requests[i]
			require.True(t, q.Took >= 0 && q.Key != "" && q.Cost <= 1e16)
			require.True(t, q.At.Year() >= 1970 && q.At.Year() <= 2262)
		}
	})
}
