package usagelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// fields has the members of a record, by name.
type fields map[string]any

// These are the names that records may have for each value. The first name that is present counts.
var (
	timeNames = []string{
		"start_time", "startTime", "started_at", "timestamp", "@timestamp", "time", "ts", "created_at", "created", "date",
	}
	endNames      = []string{"end_time", "endTime", "completed_at", "finished_at"}
	durationNames = map[string]time.Duration{
		"duration_ms": time.Millisecond, "latency_ms": time.Millisecond, "response_time_ms": time.Millisecond,
		"duration_seconds": time.Second, "seconds": time.Second,
	}
	keyNames = []string{
		"key", "api_key", "api_key_id", "team", "team_id", "user", "user_id", "project_id", "client",
		"metadata.user_api_key_team_alias", "metadata.user_api_key_alias", "metadata.user_api_key_hash",
	}
	modelNames = []string{"model", "modelVersion", "response.model"}
)

// value returns the value at a path of names.
func (f fields) value(path string) any {
	if value, ok := f[path]; ok {
		return value
	}
	name, innerPath, hasPath := strings.Cut(path, ".")
	inner, ok := f[name].(map[string]any)
	if !hasPath || !ok {
		return nil
	}
	return fields(inner).value(innerPath)
}

// text returns the text or number at a path. For any other value, it returns "".
func (f fields) text(path string) string {
	switch v := f.value(path).(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// firstText returns the text of the first of the names that has a text.
func (f fields) firstText(names []string) string {
	for _, name := range names {
		if text := f.text(name); text != "" {
			return text
		}
	}
	return ""
}

// count returns the whole number under a name, or 0 if it is absent.
func (f fields) count(name string) (uint64, error) {
	text := f.text(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > maxTokens {
		return 0, fmt.Errorf("%s is %.40q: want a whole number from 0 to 10^15", name, text)
	}
	return n, nil
}

// times returns when a request began, and how long it took. The result took is 0 if the duration is unknown.
func (f fields) times() (at time.Time, took time.Duration, err error) {
	text := f.firstText(timeNames)
	if text == "" {
		return at, 0, fmt.Errorf("no time: want one of %s", strings.Join(timeNames, ", "))
	}
	if at, err = parseTime(text); err != nil {
		return at, 0, err
	}
	if text = f.firstText(endNames); text != "" {
		end, err := parseTime(text)
		if err != nil {
			return at, 0, err
		}
		return at, max(end.Sub(at), 0), nil
	}
	for name, unit := range durationNames {
		if text = f.text(name); text != "" {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || !(n >= 0 && n*float64(unit) <= float64(1000*time.Hour)) {
				return at, 0, fmt.Errorf("%s is %.40q: want a time from 0 to 1000 hours", name, text)
			}
			return at, time.Duration(n * float64(unit)), nil
		}
	}
	return at, 0, nil
}

// errTime is the error for a value that is not a time.
var errTime = errors.New("want RFC 3339, or seconds, milliseconds, microseconds or nanoseconds since 1970, from 1970 to 2261")

// parseTime parses a time. If the text has no zone, the time is UTC.
func parseTime(text string) (time.Time, error) {
	invalid := fmt.Errorf("the time %.40q: %w", text, errTime)
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if !(n >= 0 && n < math.MaxInt64) {
			return time.Time{}, invalid
		}
		switch { // the units differ by a factor of a thousand, and no log is from 1970
		case n >= 1e17:
			n /= 1e9
		case n >= 1e14:
			n /= 1e6
		case n >= 1e11:
			n /= 1e3
		}
		if n > math.MaxInt64/1e9 {
			return time.Time{}, invalid
		}
		seconds := math.Floor(n)
		return time.Unix(int64(seconds), int64((n-seconds)*1e9)).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04:05.999999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			if at.Year() < 1970 || at.Year() > 2261 {
				return time.Time{}, invalid
			}
			return at.UTC(), nil
		}
	}
	return time.Time{}, invalid
}
