package word_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An operation of a word is an instruction, not a call, also in a package that does not import sync/atomic itself.
func TestOperationsAreCompiledIntoTheirCallers(t *testing.T) {
	require.FileExists(t, "word.go") // what go build reads: go test runs this again when it changes
	said, err := exec.Command("go", "build", "-gcflags=-m", "github.com/weir-go/weir/internal/spread").CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, operation := range []string{
		"atomic.(*Uint64).Load", "atomic.(*Uint64).Store", "atomic.(*Uint64).CompareAndSwap", "atomic.(*Int64).Load", "atomic.(*Int64).Store",
	} {
		assert.True(t, strings.Contains(string(said), "inlining call to "+operation), operation)
	}
}
