package engine

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryVerbHasAnExample: each method of a limiter has an example, except variants for a hashed key.
func TestEveryVerbHasAnExample(t *testing.T) {
	files, err := filepath.Glob("example_*_test.go")
	require.NoError(t, err)
	var examples strings.Builder
	for _, file := range append(files, "example_test.go") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		examples.Write(text)
	}
	limiter := reflect.TypeFor[*Limiter]()
	for i := range limiter.NumMethod() {
		name := limiter.Method(i).Name
		if verb, isForm := strings.CutSuffix(name, "Key"); isForm && verb != "" || name == "Close" { // all call Close
			continue
		}
		assert.Contains(t, examples.String(), "func ExampleLimiter_"+name+"(")
	}
	for _, name := range []string{"TakeAll", "Tiers", "Observe", "Concurrency", "Receipt_Refund", "Receipt_Settle",
		"Receipt_Release", "ParseRate"} {
		assert.Contains(t, examples.String(), "func Example"+name+"(")
	}
}
