package exampletest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNeedStartsNoServer: Need runs a program only with the arguments that it was given.
func TestNeedStartsNoServer(t *testing.T) {
	folder := t.TempDir()
	ran := filepath.Join(folder, "ran")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "some-server"), []byte("#!/bin/sh\necho \"$@\" >"+ran+"\n"), 0o700))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	Need(t, "some-server")
	assert.NoFileExists(t, ran)
	Need(t, "some-server", "--version")
	text, err := os.ReadFile(ran)
	require.NoError(t, err)
	assert.Equal(t, "--version\n", string(text))
}
