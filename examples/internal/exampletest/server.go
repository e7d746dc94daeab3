// Package exampletest starts the programs of the examples, each as a process on a free port. It compares their answers
// with the limits of the examples.
package exampletest

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// variable makes the test binary run as the example.
const variable = "WEIR_EXAMPLE"

// Main is the TestMain of an example. If [Start] has started the test binary, Main calls the function main. Otherwise
// it runs the tests.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Start starts the example on a free port until the test ends, and returns its URL, such as "http://127.0.0.1:1234".
func Start(t *testing.T, args ...string) string {
	t.Helper()
	return Says(t, `listening on (\S+)`, args...)
}

// Says starts the example like Start, waits for a line of its log that matches the pattern, and returns the text of the
// first group.
func Says(t *testing.T, pattern string, args ...string) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program, append([]string{"-listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), variable+"=1")
	return Run(t, cmd, pattern)
}

// Run starts a program, which runs until the test ends. Run waits for a line of standard error that matches the
// pattern, and returns the text of the first group.
func Run(t *testing.T, cmd *exec.Cmd, pattern string) (found string) {
	t.Helper()
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	lines, said := bufio.NewScanner(log), ""
	for lines.Scan() {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }() // so that the program can continue to log
			return m[1]
		}
		said += lines.Text() + "\n"
	}
	t.Fatalf("%s ended, and did not say %q:\n%s", cmd, pattern, said)
	return ""
}

// An Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request. The list header has names and values in turn, and may repeat a name.
func Do(t *testing.T, method, url, body string, header ...string) Answer {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return Answer{resp.StatusCode, resp.Header, string(text)}
}
