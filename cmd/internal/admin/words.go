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
		return fmt.Sprintf("in %d milliseconds", ceilDiv(d, time.Millisecond))
	case d <= time.Minute:
		return fmt.Sprintf("in %.1f seconds", float64(ceilDiv(d, 100*time.Millisecond))/10)
	case d <= time.Hour:
		return twoUnits(d, time.Minute, "minute", time.Second, "second")
	case d <= 24*time.Hour:
		return twoUnits(d, time.Hour, "hour", time.Minute, "minute")
	}
	return twoUnits(d, 24*time.Hour, "day", time.Hour, "hour")
}

func ceilDiv(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// twoUnits returns a duration as text in two units, such as hours and minutes.
func twoUnits(d, large time.Duration, name string, small time.Duration, smallName string) string {
	n, ratio := ceilDiv(d, small), int64(large/small)
	text := fmt.Sprintf("in %d %s", n/ratio, english.PluralWord(int(n/ratio), name, ""))
	if n%ratio > 0 {
		text += fmt.Sprintf(" %d %s", n%ratio, english.PluralWord(int(n%ratio), smallName, ""))
	}
	return text
}
