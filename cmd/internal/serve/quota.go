package serve

import (
	"github.com/weir-go/weir/cmd/internal/rules"
)

func (s *Server) logQuotas(r *rules.Rule) {
	t := r.Quotas()
	s.config.Log.Info("limits read", "rule", r.Name, "from", r.Quota.From(), "keys", t.Len(), "different", t.Policies(), "bytes", t.Bytes())
}

// logLimitError logs an error of a limit. For example, the limiter may not accept the quota of a request.
func (s *Server) logLimitError(limit string, err error) {
	s.config.Log.Warn("the limit that a request brings could not be applied", "rule", limit, "err", err)
}
