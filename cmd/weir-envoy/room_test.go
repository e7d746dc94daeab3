package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// TestAFullTableIsTold: at a check, the log reports once that a table was full since the check before.
func TestAFullTableIsTold(t *testing.T) {
	for _, overflow := range []engine.OverflowPolicy{engine.Evict, engine.Refuse} {
		service, err := envoy.New(envoy.Options{MaxKeys: 10, Overflow: overflow})
		require.NoError(t, err)
		defer service.Close()
		document, err := config.Parse("a.yaml", []byte(file))
		require.NoError(t, err)
		compiled, err := config.Compile([]*config.Document{document}, config.Options{})
		require.NoError(t, err)
		require.NoError(t, service.SetConfig(compiled))
		var told strings.Builder
		w := &roomWatch{program: &program{serveCommand: &serveCommand{MaxKeys: 10}, service: service,
			log: slog.New(slog.NewTextHandler(&told, nil))}}
		flood := func() {
			for i := range 1000 {
				_, err := service.ShouldRateLimit(context.Background(), request("d", "day", fmt.Sprint(i, told.Len()), 1))
				require.NoError(t, err)
			}
		}
		w.check()
		assert.Empty(t, told.String())
		for range 2 {
			told.Reset()
			flood()
			w.check()
			assert.Equal(t, 1, strings.Count(told.String(), "\n"), told.String())
			assert.Contains(t, told.String(), "a table is full: raise MAX_KEYS", overflow)
			assert.Regexp(t, map[engine.OverflowPolicy]string{
				engine.Evict:  `max_keys=10 counters_forgotten=[1-9]\d* requests_refused=0`,
				engine.Refuse: `max_keys=10 counters_forgotten=0 requests_refused=[1-9]\d*`,
			}[overflow], told.String())
		}
		told.Reset()
		w.check()
		assert.Empty(t, told.String())
	}
}
