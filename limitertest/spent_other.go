//go:build !unix

package limitertest

import "time"

// processorTime returns the real time, because the processor time is not available on this system.
func processorTime() time.Duration { return time.Since(startTime) }
