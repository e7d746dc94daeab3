//go:build !unix

package limitertest

import "time"

// spent returns the time: the processor time of the process is not known here.
func spent() time.Duration { return time.Since(started) }
