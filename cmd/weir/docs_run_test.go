//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printing is a block of code with what it prints: the indented block behind it, if there is one.
var printing = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```\n(?:(?:\n[^\n`][^\n]*:\n)?\n((?:    [^\n]*\n|\n)+))?")

// An example is a block of code of a document, and what the document says that it prints; "" for nothing.
type example struct{ document, language, code, output string }

func examples(t *testing.T, language string) []example {
	t.Helper()
	var all []example
	for name, text := range documents(t) {
		for _, m := range printing.FindAllStringSubmatch(text, -1) {
			if m[1] == language {
				output := regexp.MustCompile(`(?m)^    `).ReplaceAllString(m[3], "")
				all = append(all, example{name, language, m[2], strings.TrimRight(output, "\n ")})
			}
		}
	}
	return all
}

// TestProgramsOfTheDocuments compiles every Go program of the documents and runs those whose output they show. The
// README has nothing but whole programs.
func TestProgramsOfTheDocuments(t *testing.T) {
	var programs []example
	for _, e := range examples(t, "go") {
		if strings.HasPrefix(e.code, "package main\n") {
			programs = append(programs, e)
		} else {
			assert.NotEqual(t, "README.md", e.document, "not a whole program:\n%s", e.code)
		}
	}
	require.NotEmpty(t, programs)

	// The programs are laid over directories of this module, which are not there, to be built by its requirements.
	dir := t.TempDir()
	here, err := os.Getwd()
	require.NoError(t, err)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", dir + "/"}
	for i, e := range programs {
		name := fmt.Sprintf("program%d", i)
		source := filepath.Join(dir, name+".go")
		require.NoError(t, os.WriteFile(source, []byte(e.code), 0o600))
		overlay.Replace[filepath.Join(here, "internal", name, "main.go")] = source
		args = append(args, "./internal/"+name)
	}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600))
	out, err := exec.Command("go", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)

	ran := 0
	for i, e := range programs {
		if e.output == "" {
			continue
		}
		got := run(t, filepath.Join(dir, fmt.Sprintf("program%d", i)), "")
		assert.Equal(t, e.output, strings.TrimRight(got.stdout, "\n"), "%s:\n%s%s", e.document, e.code, got.stderr)
		ran++
	}
	assert.Positive(t, ran)
}

// TestCommandsOfTheDocuments runs the commands of the documents that end by themselves in seconds. Where a document
// shows what they print, or the last lines of it, they print that.
func TestCommandsOfTheDocuments(t *testing.T) {
	finite := regexp.MustCompile(`^bin/weir (replay|check|sim|version)\b`)
	program := build(t)
	ran := 0
	for _, e := range examples(t, "sh") {
		if !finite.MatchString(e.code) {
			continue
		}
		cmd := exec.Command("bash", "-ec", strings.ReplaceAll(e.code, "bin/weir", program))
		cmd.Dir = root
		out, err := cmd.Output()
		require.NoError(t, err, "%s: %s", e.document, e.code)
		assert.True(t, strings.HasSuffix(strings.TrimRight(string(out), "\n"), e.output),
			"%s: %s\nsaid to print:\n%s\nprints:\n%s", e.document, e.code, e.output, out)
		ran++
	}
	assert.Greater(t, ran, 3)
}

// TestRequestsOfTheREADME makes the README's requests to the server that `make run` starts. The limit is another, so
// that no token comes back meanwhile on a busy machine.
func TestRequestsOfTheREADME(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl on this machine: the README's requests were not made")
	}
	makefile, err := os.ReadFile(root + "/Makefile")
	require.NoError(t, err)
	require.Contains(t, string(makefile), "$(BIN)/weir serve --listen $(ADDRESS) --admin $(ADMIN)\n")
	require.Regexp(t, `(?m)^ADDRESS +:= 127\.0\.0\.1:8080$`, string(makefile))

	s := startProgram(t, "serve", "--listen", "127.0.0.1:0", "--admin", "none", "--limit", "1/h")
	url := s.until(`msg=listening url=(\S+) for=clients`)[0]
	made := 0
	for _, e := range examples(t, "sh") {
		if e.document != "README.md" || !strings.Contains(e.code, "curl") {
			continue
		}
		require.Contains(t, e.code, "http://127.0.0.1:8080/")
		out, err := exec.Command("bash", "-ec", strings.ReplaceAll(e.code, "http://127.0.0.1:8080/", url)).Output()
		require.NoError(t, err)
		require.NotEmpty(t, e.output)
		assert.Equal(t, e.output, strings.TrimRight(string(out), " \n"), e.code)
		made++
	}
	assert.Equal(t, 1, made)
}
