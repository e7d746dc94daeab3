package accesslog

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the .want files of testdata/logs anew: read what changes in them")

// TestSamplesOfEveryFormat compares every field of each format's sample with a .want file. The samples include odd and
// broken lines.
func TestSamplesOfEveryFormat(t *testing.T) {
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			got := dump(t, format)
			want := filepath.Join("testdata", "logs", format+".want")
			if *update {
				require.NoError(t, os.WriteFile(want, []byte(got), 0o644))
			}
			text, err := os.ReadFile(want)
			require.NoError(t, err)
			assert.Equal(t, string(text), got)
		})
	}
}

// dump returns the detected format and the entries of a sample as text.
func dump(t *testing.T, format string) string {
	t.Helper()
	log, err := Open([]string{filepath.Join("testdata", "logs", format+".log")}, "")
	require.NoError(t, err)
	defer log.Close()
	fields, err := log.Fields()
	require.NoError(t, err)
	assert.Equal(t, format, log.Format())
	var text strings.Builder
	fmt.Fprintf(&text, "holds the host: %v; header fields:", fields.Host)
	for _, name := range []string{
		"Authorization", "Cookie", "Referer", "User-Agent", "X-Api-Key", "X-Forwarded-For", "X-Request-Id",
		"X-Unheard-Of",
	} {
		if fields.Header(name) {
			fmt.Fprintf(&text, " %s", name)
		}
	}
	fmt.Fprintln(&text)
	for _, e := range readAll(t, log) {
		fmt.Fprintf(&text, "\n%s\n", e)
	}
	return text.String()
}

func readAll(t *testing.T, log *Log) (all []string) {
	t.Helper()
	for e, err := range entries(log) {
		switch {
		case err != nil:
			all = append(all, err.Error())
		default:
			all = append(all, entryText(e))
		}
	}
	return all
}

func entryText(e *Entry) string {
	var text strings.Builder
	fmt.Fprintf(&text, "client %q at %s\n", e.Client, e.Time.Format(time.RFC3339Nano))
	fmt.Fprintf(&text, "  method %q target %q protocol %q host %q status %d size %d",
		e.Method, e.Target, e.Proto, e.Host, e.Status, e.Size)
	for _, h := range e.Headers {
		fmt.Fprintf(&text, "\n  %s: %q", h.Name, h.Value)
	}
	return text.String()
}
