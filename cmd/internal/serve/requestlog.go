package serve

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// A requestLog writes the access log and the refusal log of a generation. The logs have no queries, headers or keys,
// because these may contain secrets.
type requestLog struct {
	settings rulefile.Log
	ip       *httplimit.ClientIP
	matches  map[string]string // texts about which requests a rule matches, by the rule's name
	log      *slog.Logger
}

func newRequestLog(f *rulefile.File, ip *httplimit.ClientIP, log *slog.Logger) *requestLog {
	l := &requestLog{settings: f.Log, ip: ip, matches: map[string]string{}, log: log}
	for i := range f.Rules {
		l.matches[f.Rules[i].Name] = f.Rules[i].Match.String()
	}
	return l
}

func isSampled(s rulefile.Sample) bool { return s == 1 || s > 1 && rand.Uint32N(uint32(s)) == 0 }

func (l *requestLog) logAnswer(x *exchange, r *http.Request) {
	if !isSampled(l.settings.Access) {
		return
	}
	l.log.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("client", l.ip.Addr(r).String()),
		slog.String("method", r.Method),
		slog.String("host", r.Host),
		slog.String("path", r.URL.EscapedPath()),
		slog.String("proto", r.Proto),
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Float64("seconds", time.Since(x.begin).Seconds()),
		slog.String("by", x.answeredBy.String()),
	)
}

// logRefusal writes a line into the refusal log. It is an [httplimit.OnLimited] function.
func (l *requestLog) logRefusal(r *http.Request, c httplimit.Check) {
	if !isSampled(l.settings.Refusals) {
		return
	}
	wait := c.Decision.RetryAfter.String()
	if c.Decision.RetryAfter == engine.Never {
		wait = "never"
	} else if c.InFlight() {
		wait = "unknown"
	}
	l.log.LogAttrs(r.Context(), slog.LevelInfo, "refused",
		slog.String("client", l.ip.Addr(r).String()),
		slog.String("rule", c.Name()),
		slog.String("for", l.matches[c.Name()]),
		slog.String("method", r.Method),
		slog.String("wait", wait),
		slog.Bool("shadow", c.Shadow()),
	)
}
