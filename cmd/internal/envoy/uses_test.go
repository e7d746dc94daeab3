package envoy

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
)

// A guarded table counts the calls that it gets after it has been closed. There must be none.
type guarded struct {
	localTable
	closed atomic.Bool
	late   *atomic.Int64
}

func (g *guarded) take(ctx context.Context, c counter, n uint64) (engine.Decision, error) {
	d, err := g.localTable.take(ctx, c, n)
	if g.closed.Load() {
		g.late.Add(1)
	}
	return d, err
}

func (g *guarded) close() error {
	g.closed.Store(true)
	return g.localTable.close()
}

// TestNoTableIsClosedWhileItIsUsed: no table is closed while a request uses it. This holds for tables of removed rules
// and for tables of limits in requests.
func TestNoTableIsClosedWhileItIsUsed(t *testing.T) {
	s, _ := newService(t, "", Options{MaxKeys: 10})
	var late, made atomic.Int64
	memory := s.tables.open
	s.tables.inStore = true
	s.tables.open = func(k config.Limit, policy engine.Policy) (table, error) {
		one, err := memory(k, policy)
		if err != nil {
			return nil, err
		}
		made.Add(1)
		return &guarded{localTable: one.(localTable), late: &late}, nil
	}
	var configs []*config.Config
	for i := range 6 {
		// A configuration with few rules leaves room for the many rules of the next one.
		configs = append(configs, compile(t, bucketsFrom(100*(i+1), []int{maxTables, 15}[i%2])))
	}
	require.NoError(t, s.SetConfig(configs[0]))

	var stop atomic.Bool
	var load sync.WaitGroup
	for worker := range 4 {
		ofRules, own := asking(t, fmt.Sprintf("d: k%d=a | k%d=b", worker, worker+9)),
			asking(t, fmt.Sprintf("d: own=a limit=5/second/%d", 61+worker))
		load.Go(func() {
			for !stop.Load() {
				_, err := s.ShouldRateLimit(context.Background(), ofRules)
				assert.NoError(t, err)
				_, _ = s.ShouldRateLimit(context.Background(), own) // fails if there is no room for its table
			}
		})
	}
	for i := range 300 {
		require.NoError(t, s.SetConfig(configs[i%len(configs)]))
	}
	stop.Store(true)
	load.Wait()
	assert.Zero(t, late.Load(), "requests of tables that were closed")
	assert.Greater(t, made.Load(), int64(300*15), "tables were made again and again")
}
