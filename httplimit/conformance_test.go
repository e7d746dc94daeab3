package httplimit_test

import (
	"testing"

	"github.com/weir-go/weir/internal/conformance"
	"github.com/weir-go/weir/internal/conformance/httpfront"
)

// TestConformance runs the cases without a store. The cases with a store run in module redislimit.
func TestConformance(t *testing.T) { conformance.Run(t, httpfront.Front(nil)) }
