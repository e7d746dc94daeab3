package exampletest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
)

// seconds matches the parts of an answer that depend on time.
var seconds = regexp.MustCompile(`(t=|Retry-After: )\d+`)

// README runs the curl commands of a document, and compares their output with the output in the document. The text
// address is the example's address in the document. The function start starts the example and returns its real URL. If
// a token comes back during a slow test, README starts the example again.
func README(t *testing.T, name, address string, law Law, start func() string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on this machine: the requests were not made")
	}
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var printed, want string
	for range 5 {
		url, first, made := start(), time.Now(), 0
		printed, want = "", ""
		for _, e := range document.Examples(string(text), "sh") {
			if !strings.Contains(e.Code, "curl") {
				continue
			}
			require.Contains(t, e.Code, "http://"+address+"/")
			out, err := exec.Command("bash", "-ec", strings.ReplaceAll(e.Code, "http://"+address, url)).Output()
			require.NoError(t, err, e.Code)
			printed += e.Code + strings.TrimRight(strings.ReplaceAll(string(out), "\r", ""), " \n") + "\n"
			want += e.Code + e.Output + "\n"
			made++
		}
		require.Positive(t, made)
		if time.Since(first) < law.Every {
			assert.Equal(t, seconds.ReplaceAllString(want, "${1}N"), seconds.ReplaceAllString(printed, "${1}N"))
			return
		}
	}
	t.Skipf("this machine is too slow to make the requests of %s before a token comes back", name)
}
