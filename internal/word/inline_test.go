package word_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOperationsAreCompiledIntoTheirCallers: an operation of a word is compiled to an instruction, not to a call, even
// in a package that does not import sync/atomic itself.
func TestOperationsAreCompiledIntoTheirCallers(t *testing.T) {
	require.FileExists(t, "word.go") // so that go test runs this test again when the file changes
	said, err := exec.Command("go", "build", "-gcflags=-m", "github.com/weir-go/weir/internal/spread").CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, operation := range []string{
		"atomic.(*Uint64).Load", "atomic.(*Uint64).Store", "atomic.(*Uint64).CompareAndSwap", "atomic.(*Int64).Load", "atomic.(*Int64).Store",
	} {
		assert.True(t, strings.Contains(string(said), "inlining call to "+operation), operation)
	}
}
