package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/weir-go/weir/cmd/weir/internal/accesslog"
	"github.com/weir-go/weir/engine"
)

// NewLimiter makes the limiter for a replay, with the options given.
type NewLimiter func(...engine.Option) (*engine.Limiter, error)

// Run takes one token from a limiter for every request in lines and reports what
// became of them. The limiter is made before anything is read.
//
// A line that cannot be used is skipped and counted. The error is not nil if the
// input breaks off, because the figures of half a log mislead, and if it holds
// no request at all: a wrong file must not look like a limit that refuses
// nobody.
func Run(newLimiter NewLimiter, lines *accesslog.Lines) (*Report, error) {
	var clock clock
	limiter, err := newLimiter(engine.ClockFunc(clock.now))
	if err != nil {
		return nil, err
	}
	defer limiter.Close()
	clients, report := newClients(limiter), &Report{}
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, accesslog.ErrLineTooLong) {
			return nil, err
		}
		var entry accesslog.Entry
		if err == nil {
			entry, err = accesslog.ParseLine(line)
		}
		if err != nil {
			report.skip(lines.Number(), err)
			continue
		}
		now, behind := clock.advance(entry.Time)
		client := clients.of(entry.Host)
		report.count(client, limiter.TakeAt(client.key, 1, now).Allowed)
		report.stamp(entry.Time, behind)
	}
	if report.Requests == 0 {
		return nil, noRequest(report)
	}
	report.finish(clients, limiter.Stats())
	return report, nil
}

// noRequest says why there was nothing to replay.
func noRequest(r *Report) error {
	if r.Skipped == 0 {
		return errors.New("the log is empty: there is nothing to replay")
	}
	return fmt.Errorf("none of its lines is in the Common or Combined Log Format (%s); is it an access log?", r.Reasons[0])
}
