package rpcfront_test

import (
	"testing"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/rpcfront"
)

// TestDirect checks that the limits behave in the same way without a framework as with each framework. The cases with a
// store run in module redislimit.
func TestDirect(t *testing.T) {
	for _, name := range []string{"gRPC", "Connect"} {
		t.Run(name, func(t *testing.T) { conformance.Run(t, rpcfront.Direct(name, nil)) })
	}
}
