package serve

import (
	"context"
	"log/slog"

	"github.com/weir-go/weir/cmd/internal/rules"
)

// logQuotas says what was read of the files of limits.
func (s *Server) logQuotas(all []*rules.Rule) {
	for _, r := range all {
		if t := r.Quotas(); t != nil {
			level := slog.LevelInfo
			if t.Len() == 0 { // a file that is being written, perhaps
				level = slog.LevelWarn
			}
			s.config.Log.Log(context.Background(), level, "limits read", "rule", r.Name, "file", r.Quota.File, "keys", t.Len(), "different", t.Policies(), "bytes", t.Bytes())
		}
	}
}

// limitFailed logs an error of a limit, such as that of a quota that its limiter does not take. The log sums up floods.
func (s *Server) limitFailed(limit string, err error) {
	s.config.Log.Warn("a limit could not be applied as the request wanted", "rule", limit, "err", err)
}
