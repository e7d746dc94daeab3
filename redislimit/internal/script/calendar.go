package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/engine"
)

const calendarNumbers = 6

// calendarWindow is the algorithm of calendar periods, which the engine treats as fixed windows.
var calendarWindow = &algorithm{
	5, "", 1 << 32, 3, (*Limit).limitNumber, calendarWindowLua, rueidis.NewLuaScript(compose(calendarWindowLua)), (*Model).calendarWindow,
}

func (l *Limit) limitNumber() []string { return []string{strconv.FormatUint(l.tokens, 10)} }

func (l *Limit) makeCalendar(p engine.Policy) error {
	period, name, _ := p.Calendar()
	zone, err := ZoneOf(p)
	if err != nil {
		return err
	}
	if l.calendar, err = atomicbucket.NewCalendar(period, zone); err != nil {
		return err
	}
	l.kind = period.String() + "." + name
	return l.makeWindow(period.Longest())
}

// ZoneOf returns the time zone of a window of the calendar. It must have a name by which every machine finds the same
// zone.
func ZoneOf(p engine.Policy) (*time.Location, error) {
	period, name, _ := p.Calendar()
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("the time zone %q is not the same on every machine: want one such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || engine.CalendarWindow(p.Limit(), period, zone) != p {
		return nil, fmt.Errorf("the time zone %q is known only on this machine: want one such as Europe/Berlin", name)
	}
	return zone, nil
}

// appendArguments appends the arguments for the script to args. For a calendar, they include the starts of the periods
// around the current one.
func (l *Limit) appendArguments(args []string) []string {
	args = append(args, l.arguments...)
	if l.calendar == nil {
		return args
	}
	first := max(l.calendar.Number(time.Now().UnixNano()+l.clockOffset.Load()*int64(time.Second)), 1) - 1
	args = append(args, strconv.FormatUint(first, 10))
	for n := range uint64(calendarNumbers - 1) {
		args = append(args, strconv.FormatInt(l.calendar.Begin(first+n)/1000, 10))
	}
	return args
}

// timeReply is the beginning of a reply that contains the server's time.
const timeReply = "WEIRTIME "

// timeOf returns the server's time, in seconds since 1970, if err is a reply that contains this time.
func timeOf(err error) (seconds int64, ok bool) {
	reply, isReply := rueidis.IsRedisErr(err)
	if !isReply || !strings.HasPrefix(reply.Error(), timeReply) {
		return 0, false
	}
	seconds, err = strconv.ParseInt(strings.TrimPrefix(reply.Error(), timeReply), 10, 64)
	return seconds, err == nil
}

func (l *Limit) noteServerTime(seconds int64) { l.clockOffset.Store(seconds - time.Now().Unix()) }

func (m *Model) calendarWindow(l *Limit, now int64, a Ask) Answer {
	q := l.quota(a)
	period := int64(l.calendar.Number(now * 1000))
	live := m.exists && m.at >= period
	start, count, before := period, uint64(0), uint64(0)
	if live {
		start, count, before = min(m.at, period+1), m.count, m.count
		if a.Window == start || a.Window == AnyWindow {
			count -= min(a.Returned, count)
		}
	}
	count = charged(count, a.Debt, l.terms.MaxDebt*q.Tokens)
	answer := decide(q, a, q.Tokens-min(count, q.Tokens))
	count += answer.Granted
	changed := live && (count != before || start != m.at)
	if !live && answer.Granted+a.Debt > 0 {
		live, changed = true, true
	}
	if live {
		answer.Window, answer.ResetAfter = start, micros(uint64(l.calendar.Begin(uint64(start)+1)/1000-now))
	}
	if answer.RetryAfter == unknown {
		answer.RetryAfter = answer.ResetAfter
	}
	if changed {
		m.exists, m.at, m.count = true, start, count
	}
	return answer
}
