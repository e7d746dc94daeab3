//go:build !unix

package limitertest

import "time"

// spent returns the real time, because the processor time is not available on this system.
func spent() time.Duration { return time.Since(started) }
