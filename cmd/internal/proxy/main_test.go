package proxy

import (
	"testing"

	"github.com/weir-go/weir/internal/leakcheck"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }
