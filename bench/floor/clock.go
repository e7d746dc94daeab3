package floor

import (
	"time"

	"github.com/weir-go/weir/internal/tsc"
)

// A Clock reads the precise clock as the time since start.
type Clock struct{ start time.Time }

// NewClock returns a clock that started a second ago. So the clock never reads 0.
func NewClock() Clock { return Clock{time.Now().Add(-time.Second)} }

func (c *Clock) since() uint64 { return uint64(time.Since(c.start)) }

// TSC reports whether the processor has a trusted time stamp counter.
func TSC() bool { return tsc.Trusted() }

func readTSC() uint64 { return tsc.Read() }
