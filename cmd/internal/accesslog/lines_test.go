package accesslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func compress(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// drain reads all lines. A line that is too long is returned as "<too long>".
func drain(l *lines) (all []string, err error) {
	for {
		line, err := l.next()
		switch {
		case errors.Is(err, ErrLineTooLong):
			all = append(all, "<too long>")
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return all, nil
		case err != nil:
			return all, err
		default:
			all = append(all, string(line))
		}
	}
}

func TestLinesCutsPlainAndGzipAlike(t *testing.T) {
	longest := strings.Repeat("x", MaxLine)
	cases := map[string]struct {
		text string
		want []string
	}{
		"nothing":                       {"", nil},
		"one byte":                      {"a", []string{"a"}},
		"no newline at the end":         {"a\nb", []string{"a", "b"}},
		"newline at the end":            {"a\nb\n", []string{"a", "b"}},
		"empty lines":                   {"\n\nb\n", []string{"", "", "b"}},
		"line ends of Windows":          {"a\r\nb\r\n", []string{"a", "b"}},
		"longest line":                  {longest + "\nb\n", []string{longest, "b"}},
		"longest line, ended by \\r\\n": {longest + "\r\nb\r\n", []string{longest, "b"}},
		"one byte too long":             {"a\n" + longest + "y\nb\n", []string{"a", "<too long>", "b"}},
		"many buffers too long":         {strings.Repeat(longest, 5) + "\nb\n", []string{"<too long>", "b"}},
		"too long up to the end":        {strings.Repeat(longest, 3), []string{"<too long>"}},
		"too long, ends with a buffer":  {longest + "xx", []string{"<too long>"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for form, input := range map[string][]byte{"plain": []byte(c.text), "gzip": compress(t, c.text)} {
				l := newLines(bytes.NewReader(input))
				got, err := drain(l)
				require.NoError(t, err, form)
				assert.Equal(t, c.want, got, form)
				assert.Equal(t, len(c.want), l.number, form)
			}
		})
	}
}

func TestLinesReadsConcatenatedGzip(t *testing.T) {
	both := append(compress(t, "a\nb\n"), compress(t, "c\n")...)
	got, err := drain(newLines(bytes.NewReader(both)))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, got)
}

func TestLinesDetectsGzipOnASlowPipe(t *testing.T) {
	got, err := drain(newLines(iotest.OneByteReader(bytes.NewReader(compress(t, "a\n")))))
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, got)
}

func TestLinesExplainsABrokenStream(t *testing.T) {
	whole := compress(t, strings.Repeat("a line\n", 1000))
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-6] ^= 0xff // in the checksum
	failed := errors.New("device on fire")
	cases := map[string]struct {
		input io.Reader
		want  string
		is    error
	}{
		"cut in the data": {bytes.NewReader(whole[:len(whole)-12]), "the file is truncated", io.ErrUnexpectedEOF},
		"cut in the trailer": {bytes.NewReader(whole[:len(whole)-1]),
			"the gzip data breaks off after line 1000: the file is truncated", io.ErrUnexpectedEOF},
		"cut in the header": {bytes.NewReader(whole[:5]),
			"the gzip data breaks off after line 0: the file is truncated", io.ErrUnexpectedEOF},
		"only the magic": {bytes.NewReader(whole[:2]), "the file is truncated", io.ErrUnexpectedEOF},
		"checksum": {bytes.NewReader(damaged),
			"the gzip data is damaged after line 1000; get an intact copy", gzip.ErrChecksum},
		"header": {strings.NewReader("\x1f\x8bnot gzip at all"),
			"the gzip data is damaged after line 0", gzip.ErrHeader},
		"failure at once": {iotest.ErrReader(failed), "reading stopped after line 0: device on fire", failed},
		"failure in the text": {io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(failed)),
			"reading stopped after line 1: device on fire", failed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := drain(newLines(c.input))
			assert.ErrorContains(t, err, c.want)
			assert.ErrorIs(t, err, c.is)
		})
	}
}
