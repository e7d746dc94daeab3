package admin

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/weir-go/weir/engine"
)

// inWords returns a time to wait as text for people. The time is rounded up, because an earlier request would be
// refused.
func inWords(d time.Duration) string {
	switch {
	case d == engine.Never:
		return "never"
	case d <= 0:
		return "now"
	case d <= time.Millisecond:
		return "in a millisecond"
	case d < time.Second:
		return fmt.Sprintf("in %d milliseconds", up(d, time.Millisecond))
	case d <= time.Minute:
		return fmt.Sprintf("in %.1f seconds", float64(up(d, 100*time.Millisecond))/10)
	case d <= time.Hour:
		return two(d, time.Minute, "minute", time.Second, "second")
	case d <= 24*time.Hour:
		return two(d, time.Hour, "hour", time.Minute, "minute")
	}
	return two(d, 24*time.Hour, "day", time.Hour, "hour")
}

func up(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// The function two returns a duration as text in two units, such as hours and minutes.
func two(d, large time.Duration, name string, small time.Duration, smallName string) string {
	n, per := up(d, small), int64(large/small)
	text := fmt.Sprintf("in %d %s", n/per, english.PluralWord(int(n/per), name, ""))
	if n%per > 0 {
		text += fmt.Sprintf(" %d %s", n%per, english.PluralWord(int(n%per), smallName, ""))
	}
	return text
}
