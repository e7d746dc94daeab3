package source

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// TestAPipeIsNoFile: a pipe among the files is an error. Otherwise a read would wait for a writer, and later changes
// would not be read.
func TestAPipeIsNoFile(t *testing.T) {
	directory := t.TempDir()
	pipe := filepath.Join(directory, "a.yaml")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	names, err := listFiles(directory)
	require.ErrorContains(t, err, pipe+": want a regular file, got p", "%q would be read", names)
	_, _, err = Read(directory, config.Options{})
	assert.ErrorContains(t, err, pipe+": want a regular file")
}
