package redislimit

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// slowEvery bounds how often single calls that timed out are logged.
const slowEvery = time.Minute

// Logger makes a client log when the store is lost, with the cause, and when it is back. While the store is lost, each
// new kind of cause is logged once. Calls that time out while the store is not lost are logged at most once per minute.
// By default, or with nil, nothing is logged.
func Logger(log *slog.Logger) ClientOption {
	return func(c *clientConfig) error {
		c.log = log
		return nil
	}
}

type condition struct {
	outage      outage
	lastWarned  atomic.Int64 // when timeouts were last logged; 0 for never
	lastFailure atomic.Pointer[failure]
}

type failure struct {
	err error
	at  time.Time
}

func (c *Client) noteFailure(err error, isLost bool, now int64) {
	c.failed.Add(1)
	c.condition.lastFailure.Store(&failure{err, time.Now()})
	kind := kindOf(err)
	if isLost && c.condition.outage.begin(kind, time.Now) {
		c.logAttrs(slog.LevelError, "the store is lost", slog.String("kind", kind), slog.Any("error", err))
	} else if c.condition.outage.addKind(kind) {
		c.logAttrs(slog.LevelError, "the store is still lost", slog.String("kind", kind), slog.Any("error", err))
	}
	last := c.condition.lastWarned.Load()
	if c.condition.outage.lostParts() == 0 && kind == "timeout" && (last == 0 || now-last >= int64(slowEvery)) &&
		c.condition.lastWarned.CompareAndSwap(last, now) {
		c.logAttrs(slog.LevelWarn, "the store is slow", slog.Any("error", err), slog.Int64("timeouts", c.timeouts.Load()))
	}
}

func (c *Client) noteReturn() {
	if c.condition.outage.end(time.Now) {
		c.logAttrs(slog.LevelInfo, "the store is back")
	}
}

func (c *Client) logAttrs(level slog.Level, text string, attributes ...slog.Attr) {
	if c.log != nil {
		c.log.LogAttrs(context.Background(), level, text, attributes...)
	}
}

func kindOf(err error) string {
	var reply *rueidis.RedisError
	var network net.Error
	switch {
	case errors.Is(err, errEvicts):
		return "eviction"
	case isCertificateError(err):
		return "certificate"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTimeout):
		return "timeout"
	case errors.As(err, &reply):
		text := reply.Error()
		if isForbidden(text) {
			return "forbidden"
		}
		if word, _, _ := strings.Cut(text, " "); word == strings.ToUpper(word) {
			return strings.ToLower(word) // READONLY, LOADING, CLUSTERDOWN, ...
		}
		return "error" // ERR, which the client library removes
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	}
	return "connection"
}

func isForbidden(reply string) bool {
	return strings.HasPrefix(reply, "NOPERM") || strings.Contains(reply, "can't run this command") ||
		strings.Contains(reply, "No permissions") || strings.Contains(reply, "NOAUTH")
}
