package accesslog

import (
	"bytes"
	"fmt"
	"time"
)

// Dates outside these years are refused. A log cannot be older than its format. The clock of a replay,
// time.Time.UnixNano, ends in the year 2262.
const (
	firstYear = 1970
	lastYear  = 2261
)

// These are the forms of a time stamp, in the notation of package time. They are parsed by hand, because time.Parse
// allocates a zone for each time that is not in UTC.
const (
	clfForm     = "02/Jan/2006:15:04:05 -0700"
	haproxyForm = "02/Jan/2006:15:04:05.000"
	isoForm     = "2006-01-02T15:04:05Z07:00"
	unixForm    = "seconds since 1970"
)

func parseCLF(text []byte) (time.Time, error) {
	s := newStamp(text)
	s.dayMonthYear()
	s.char(':')
	s.clock()
	s.char(' ')
	s.zone()
	return s.time(clfForm)
}

// parseHAProxy parses a date of HAProxy. It has no zone and counts as UTC.
func parseHAProxy(text []byte) (time.Time, error) {
	s := newStamp(text)
	s.dayMonthYear()
	s.char(':')
	s.clock()
	s.fraction()
	return s.time(haproxyForm)
}

// parseISO parses a date of ISO 8601 with a zone, with or without a fraction of a second.
func parseISO(text []byte) (time.Time, error) {
	s := newStamp(text)
	s.year = s.number(4)
	s.char('-')
	s.month = s.number(2)
	s.char('-')
	s.day = s.number(2)
	s.char('T')
	s.clock()
	s.fraction()
	s.zone()
	return s.time(isoForm)
}

// parseUnix parses a number of seconds since 1970, with or without a fraction.
func parseUnix(text []byte) (time.Time, error) {
	seconds, _, _ := bytes.Cut(text, []byte("."))
	const longest = 12 // more digits are certainly beyond lastYear
	s := newStamp(text[min(len(seconds), len(text)):])
	s.fraction()
	if !isNumber(seconds) || len(seconds) > longest || !s.ok || len(s.rest) > 0 {
		return time.Time{}, badForm(text, unixForm)
	}
	return inRange(time.Unix(digits(seconds), int64(s.nanosecond)).UTC(), text)
}

// parseTime parses a date whose form it can recognize by the first characters.
func parseTime(text []byte) (time.Time, error) {
	switch {
	case len(text) > 2 && text[2] == '/':
		return parseCLF(text)
	case len(text) > 4 && text[4] == '-':
		return parseISO(text)
	case len(text) > 0 && isNumber(text[:1]):
		return parseUnix(text)
	}
	return time.Time{}, fmt.Errorf("the date %s has no known form", quote(text))
}

// A stamp parses a date from a text. Its fields may be out of range until the method time has checked them.
type stamp struct {
	text, rest                             []byte
	ok                                     bool // the text has had the expected form so far
	year, month, day, hour, minute, second int
	nanosecond                             int
	offset                                 time.Duration // how far the zone is ahead of UTC
}

func newStamp(text []byte) stamp { return stamp{text: text, rest: text, ok: true} }

func (s *stamp) number(n int) int {
	if len(s.rest) < n || !isNumber(s.rest[:n]) {
		s.ok = false
		return 0
	}
	value := digits(s.rest[:n])
	s.rest = s.rest[n:]
	return int(value)
}

func (s *stamp) char(c byte) {
	if len(s.rest) == 0 || s.rest[0] != c {
		s.ok = false
		return
	}
	s.rest = s.rest[1:]
}

func (s *stamp) dayMonthYear() {
	s.day = s.number(2)
	s.char('/')
	s.monthName()
	s.char('/')
	s.year = s.number(4)
}

func (s *stamp) monthName() {
	const length, names = 3, "JanFebMarAprMayJunJulAugSepOctNovDec"
	if len(s.rest) < length {
		s.ok = false
		return
	}
	for i := 0; i < len(names); i += length {
		if string(s.rest[:length]) == names[i:i+length] {
			s.month, s.rest = i/length+1, s.rest[length:]
			return
		}
	}
	s.ok = false
}

func (s *stamp) clock() {
	s.hour = s.number(2)
	s.char(':')
	s.minute = s.number(2)
	s.char(':')
	s.second = s.number(2)
}

// fraction parses the fraction of a second, if any. Digits beyond nanoseconds are dropped.
func (s *stamp) fraction() {
	if len(s.rest) == 0 || s.rest[0] != '.' {
		return
	}
	s.rest = s.rest[1:]
	n := 0
	for unit := int(time.Second) / 10; n < len(s.rest) && isNumber(s.rest[n:n+1]); n, unit = n+1, unit/10 {
		s.nanosecond += int(s.rest[n]-'0') * unit
	}
	s.ok = s.ok && n > 0
	s.rest = s.rest[n:]
}

func (s *stamp) zone() {
	if len(s.rest) == 0 {
		s.ok = false
		return
	}
	sign := s.rest[0]
	s.rest = s.rest[1:]
	if sign == 'Z' {
		return
	}
	hours := s.number(2)
	if len(s.rest) > 0 && s.rest[0] == ':' {
		s.rest = s.rest[1:]
	}
	minutes := s.number(2)
	s.ok = s.ok && (sign == '+' || sign == '-') && hours < 24 && minutes < 60
	s.offset = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if sign == '-' {
		s.offset = -s.offset
	}
}

// time returns the instant, in UTC. The error for a text in a wrong form names form, the expected one.
func (s *stamp) time(form string) (time.Time, error) {
	if !s.ok || len(s.rest) > 0 {
		return time.Time{}, badForm(s.text, form)
	}
	badField := ""
	switch {
	case s.month < 1 || s.month > 12:
		badField = "month"
	case s.day < 1 || s.day > time.Date(s.year, time.Month(s.month)+1, 0, 0, 0, 0, 0, time.UTC).Day():
		badField = "day"
	case s.hour > 23:
		badField = "hour"
	case s.minute > 59:
		badField = "minute"
	case s.second > 59:
		badField = "second"
	}
	if badField != "" {
		return time.Time{}, fmt.Errorf("the date %s is impossible: %s out of range", quote(s.text), badField)
	}
	local := time.Date(s.year, time.Month(s.month), s.day, s.hour, s.minute, s.second, s.nanosecond, time.UTC)
	return inRange(local.Add(-s.offset), s.text)
}

func inRange(t time.Time, text []byte) (time.Time, error) {
	if y := t.Year(); y < firstYear || y > lastYear {
		return time.Time{}, fmt.Errorf("the date %s is outside the years %d to %d", quote(text), firstYear, lastYear)
	}
	return t, nil
}

func badForm(text []byte, form string) error {
	return fmt.Errorf("the date %s is not of the form %s", quote(text), form)
}

func digits(text []byte) (value int64) {
	for _, c := range text {
		value = value*10 + int64(c-'0')
	}
	return value
}
