package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// lineAt returns a line of a client, some seconds after a fixed instant.
func lineAt(client string, second int) string {
	at := time.Date(2015, time.May, 17, 10, 0, second, 0, time.UTC)
	return fmt.Sprintf("%s - - [%s] \"GET / HTTP/1.1\" 200 1\n", client, at.Format(clfForm))
}

// writeFiles writes each text to a file and returns the names of the files.
func writeFiles(t interface {
	require.TestingT
	TempDir() string
}, texts ...string) (names []string) {
	dir := t.TempDir()
	for i, text := range texts {
		name := filepath.Join(dir, fmt.Sprintf("%d.log", i))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		names = append(names, name)
	}
	return names
}

// clients returns the client of each entry in order, or the reason of a bad line.
func clients(t *testing.T, log *Log) (all []string) {
	t.Helper()
	for e, err := range entries(log) {
		if err != nil {
			all = append(all, err.Error())
		} else {
			all = append(all, string(e.Client))
		}
	}
	return all
}

func TestSeveralFilesAreMergedByTime(t *testing.T) {
	cases := map[string]struct {
		files []string
		want  string
	}{
		"rotated, newest first": {[]string{lineAt("e", 4) + lineAt("f", 5), lineAt("c", 2) + lineAt("d", 3),
			lineAt("a", 0) + lineAt("b", 1)}, "a b c d e f"},
		"of two machines": {[]string{lineAt("a", 0) + lineAt("c", 2) + lineAt("e", 4),
			lineAt("b", 1) + lineAt("d", 3)}, "a b c d e"},
		"same time":              {[]string{lineAt("a", 1) + lineAt("b", 1), lineAt("c", 1)}, "a b c"},
		"same time, later file":  {[]string{lineAt("x", 2), lineAt("a", 0) + lineAt("y", 2)}, "a x y"},
		"empty files":            {[]string{"", lineAt("b", 1), "\n", lineAt("a", 0)}, "a b"},
		"out of order in a file": {[]string{lineAt("b", 5) + lineAt("c", 3), lineAt("a", 4)}, "c a b"},
		"a late first line": {[]string{lineAt("d", 9) + lineAt("a", 0), lineAt("b", 5) + lineAt("c", 6)},
			"a b c d"},
		"nothing": {[]string{"", ""}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			log, err := Open(writeFiles(t, c.files...), "")
			require.NoError(t, err)
			got := slices.DeleteFunc(clients(t, log), func(s string) bool {
				return strings.Contains(s,
					"the line is empty")
			})
			assert.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// TestMergeKeepsEveryEntryOnce: whatever the files, each entry comes once. The order is by time, then by file.
func TestMergeKeepsEveryEntryOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		want := map[string]bool{}
		for file := range rapid.IntRange(1, 6).Draw(rt, "files") {
			seconds := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 12).Draw(rt, "seconds")
			var text strings.Builder
			for i, second := range seconds {
				client := fmt.Sprintf("f%d-%02d", file, i)
				want[client] = true
				text.WriteString(lineAt(client, second))
			}
			texts = append(texts, text.String())
		}
		log, err := Open(writeFiles(struct {
			*rapid.T
			dir
		}{rt, dir{t}}, texts...), rapid.SampledFrom([]string{"", "common"}).Draw(rt, "format"))
		require.NoError(rt, err)
		last, lastTime := map[string]string{}, time.Time{} // last has each client's latest entry at lastTime
		for e, err := range entries(log) {
			require.NoError(rt, err)
			client := string(e.Client)
			require.True(rt, want[client], "%s comes twice", client)
			delete(want, client)
			file, _, _ := strings.Cut(client, "-")
			require.False(rt, e.Time.Before(lastTime))
			if e.Time.After(lastTime) {
				clear(last)
			}
			require.Less(rt, last[file], client, "the order in a file")
			last[file], lastTime = client, e.Time
		}
		require.Empty(rt, want)
		require.Empty(rt, log.active)
	})
}

type dir struct{ t *testing.T }

func (d dir) TempDir() string { return d.t.TempDir() }

func TestOnlyFilesOfTheTimeAreOpen(t *testing.T) {
	var texts []string
	for i := range 50 {
		texts = append(texts, lineAt("a", 2*i)+lineAt("b", 2*i+1))
	}
	log, err := Open(writeFiles(t, texts...), "")
	require.NoError(t, err)
	for range 100 {
		_, err := log.Next()
		require.NoError(t, err)
		open := 0
		for _, f := range log.files {
			if f.stream != nil {
				open++
			}
		}
		assert.LessOrEqual(t, open, 2)
	}
}

func TestAPipeIsMergedWithFiles(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdin := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = stdin }()
	_, err = w.WriteString(lineAt("b", 1) + lineAt("d", 3))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	log, err := Open(append(writeFiles(t, lineAt("c", 2), lineAt("a", 0)), Stdin), "")
	require.NoError(t, err)
	assert.Equal(t, int64(-1), log.Size())
	assert.Equal(t, []string{"a", "b", "c", "d"}, clients(t, log))
}

func TestABadLineOfSeveralFilesHasItsName(t *testing.T) {
	names := writeFiles(t, lineAt("a", 0)+"nonsense\n", lineAt("b", 1))
	log, err := Open(names, "")
	require.NoError(t, err)
	assert.Contains(t, clients(t, log), names[0]+", line 2: no date in brackets followed by a request in quotes")
}

func TestAFailureOfSeveralFilesHasItsName(t *testing.T) {
	packed := compress(t, strings.Repeat(lineAt("a", 0), 100000))
	names := writeFiles(t, lineAt("b", 1), string(packed[:len(packed)-4]), "hello\n")
	log, err := Open(names[:2], "")
	require.NoError(t, err)
	got := clients(t, log)
	assert.Contains(t, got[len(got)-1], names[1]+": the gzip data breaks off after line 100000")
	log, err = Open(names, "")
	require.NoError(t, err)
	_, err = log.Next()
	assert.ErrorContains(t, err, names[2]+": line 1 is in no known format")
}

func TestMarksAndHeadersInFrontOfLines(t *testing.T) {
	const line = `203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12`
	for _, front := range []string{
		"", "\ufeff",
		"<190>Nov 21 22:07:05 host nginx: ",
		"<190>Nov  1 22:07:05 host nginx[42]: ",
		"<190>Nov  1 22:07:05 nginx: ",
		"Nov 21 22:07:05 host nginx: ",
		"2026-11-21T22:07:05.123456+01:00 host nginx[42]: ",
		"2026-11-21T22:07:05Z host nginx: ",
		"<190>1 2026-11-21T22:07:05.003Z host nginx 42 - - ",
		"<190>1 2026-11-21T22:07:05.003Z host nginx 42 access - \ufeff",
		`<190>1 - - - - - [a@1 x="\]"][b y="\"\\"] `,
		"2026-11-21T22:07:05.123456789Z stdout F ",
		"2026-11-21T22:07:05+01:00 stderr F ",
		"2026-11-21T22:07:05.123456789Z stdout F Nov 21 22:07:05 host nginx: ",
	} {
		p := &parser{}
		assert.NoError(t, p.parse(combined, []byte(front+line)), front)
		assert.Equal(t, "203.0.113.9", string(p.entry.Client), front)
	}
	for _, front := range []string{
		"<190>", "<190>Nov 21 22:07:05 ", "<1900>Nov 21 22:07:05 host nginx: ", "Nov 32x22:07:05 host nginx: ",
		"Nov 21 22:07:05 host nginx ", "2026-11-21 host nginx: ",
		"<190>1 2026-11-21T22:07:05.003Z host nginx 42 - ", `<190>1 - - - - - [a x="\] `,
		"2026-11-21T22:07:05Z stdout P ", "2026-11-21 stdout F ", "2026-11-21T22:07:05Z stdin F ",
	} {
		p := &parser{}
		if err := p.parse(combined, []byte(front+line)); err == nil {
			assert.NotEqual(t, "203.0.113.9", string(p.entry.Client), front)
		}
	}
}

func TestUTF16IsRead(t *testing.T) {
	for name, order := range map[string][2]int{"little endian": {0, 1}, "big endian": {1, 0}} {
		var text bytes.Buffer
		for _, c := range "\ufeff" + strings.ReplaceAll(commonLine+commonLine, "\n", "\r\n") {
			pair := [2]byte{byte(c), byte(c >> 8)}
			text.Write([]byte{pair[order[0]], pair[order[1]]})
		}
		log := NewLog(&text)
		assert.Equal(t, []string{"203.0.113.9", "203.0.113.9"}, clients(t, log), name)
		assert.Equal(t, "common", log.Format())
	}
}

// TestLinesOfDocker: Docker wraps each line of any format in JSON. A wrapped text without a line end is only a piece of
// a line.
func TestLinesOfDocker(t *testing.T) {
	wrap := func(line, stream string) string {
		text, err := json.Marshal(map[string]string{"log": line, "stream": stream, "time": "2026-11-20T09:00:00Z"})
		require.NoError(t, err)
		return string(text) + "\n"
	}
	for _, format := range Formats() {
		plain, err := os.ReadFile(filepath.Join("testdata", "logs", format+".log"))
		require.NoError(t, err)
		var wrapped strings.Builder
		for line := range strings.Lines(string(plain)) {
			if utf8.ValidString(line) && !isBlank([]byte(line)) {
				wrapped.WriteString(wrap(line, "stdout"))
			}
		}
		if wrapped.Len() == 0 {
			continue
		}
		want, err := readEntries(NewLog(bytes.NewReader(plain)))
		require.NoError(t, err)
		got, err := readEntries(NewLog(strings.NewReader(wrapped.String())))
		require.NoError(t, err)
		for _, e := range got {
			require.Contains(t, want, e, format)
		}
		require.NotEmpty(t, got, format)
	}
	good := strings.TrimSuffix(commonLine, "\n")
	for _, line := range []string{
		wrap(good, "stdout"), wrap(good+"\n", "stdin"), wrap("\n", "stdout"), `{"log":"` + "\n", `{"log":{"log":"a"}}` + "\n",
	} {
		log := NewLog(strings.NewReader(line))
		_, err := log.Next()
		require.Error(t, err, line)
	}
}

func readEntries(log *Log) (all []string, err error) {
	for {
		e, err := log.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err == nil:
			all = append(all, entryText(e))
		case asLineError(err) == nil:
			return all, err
		}
	}
}
