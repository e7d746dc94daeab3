package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/weir-go/weir/engine" // imported by the programs, so the test runs again when it changes
	_ "github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/internal/document"
)

// TestProgramsOfTheDocuments compiles every Go program in the documents, and runs the programs whose output a document
// shows. The README has only complete programs.
func TestProgramsOfTheDocuments(t *testing.T) {
	type program struct {
		document.Example
		name string // the name of the document
	}
	var programs []program
	for name, text := range documents(t) {
		for _, e := range document.Examples(text, "go") {
			if strings.HasPrefix(e.Code, "package main\n") {
				programs = append(programs, program{e, name})
			} else {
				assert.NotEqual(t, "README.md", name, "not a whole program:\n%s", e.Code)
			}
		}
	}

	// An overlay puts the programs into folders of this directory that do not exist. So the requirements of this module
	// apply to them.
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", dir + string(filepath.Separator)}
	for i, p := range programs {
		name := fmt.Sprintf("program%d", i)
		source := filepath.Join(dir, name+".go")
		require.NoError(t, os.WriteFile(source, []byte(p.Code), 0o600))
		overlay.Replace[filepath.Join(here, name, "main.go")] = source
		args = append(args, "./"+name)
	}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600))
	out, err := exec.Command("go", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)

	ran := 0
	for i, p := range programs {
		if p.Output == "" {
			continue
		}
		name := fmt.Sprintf("program%d", i)
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		out, err := exec.Command(filepath.Join(dir, name)).CombinedOutput()
		require.NoError(t, err, "%s:\n%s%s", p.name, p.Code, out)
		assert.Equal(t, p.Output, strings.TrimRight(string(out), "\n"), "%s:\n%s", p.name, p.Code)
		ran++
	}
	assert.Greater(t, ran, 1)
}
