package overshoot

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

func (s *Server) scriptCalls(ctx context.Context) (int64, error) {
	info, err := s.client.Do(ctx, s.client.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return 0, fmt.Errorf("overshoot: INFO commandstats: %w", err)
	}
	total := int64(0)
	for line := range strings.Lines(info) {
		name, fields, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "cmdstat_evalsha" && name != "cmdstat_eval" {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(fields, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("overshoot: INFO commandstats: %q: %w", line, err)
		}
		total += n
	}
	return total, nil
}
