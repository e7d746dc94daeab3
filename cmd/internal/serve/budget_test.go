package serve

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		files          uint64
		maxConnections int
		want           budget
	}{
		{0, rulefile.ByOpenFiles, budget{administrators: 128}},
		{0, 100, budget{100, 100, 100, 0, 128}},
		{256, rulefile.ByOpenFiles, budget{112, 112, 112, 112, 16}},
		{1024, rulefile.ByOpenFiles, budget{448, 448, 448, 448, 64}},
		{20_300, rulefile.ByOpenFiles, budget{10_022, 10_022, 10_022, 10_022, 128}},
		{1_048_576, rulefile.ByOpenFiles, budget{524_160, 524_160, 524_160, 524_160, 128}},
		{1024, 800, budget{800, 800, 800, 96, 64}},
		{1024, 10_000, budget{10_000, 10_000, 10_000, 1, 64}},
		{1024, 0, budget{0, 0, 0, 896, 64}},
		{8, rulefile.ByOpenFiles, budget{1, 1, 1, 1, 16}},
	} {
		f := &rulefile.File{Server: rulefile.Server{MaxConnections: c.maxConnections}, Listen: make([]rulefile.Listener, 1)}
		assert.Equal(t, c.want, newBudget(c.files, f), "%+v", c)
	}
	both := &rulefile.File{Listen: make([]rulefile.Listener, 1), Decide: &rulefile.Decide{}}
	both.Server.MaxConnections = 801
	assert.Equal(t, budget{401, 400, 400, 95, 64}, newBudget(1024, both))
	both.Redis = &rulefile.Redis{}
	assert.Equal(t, budget{267, 267, 267, 95, 64}, newBudget(1024, both))
}

// TestUpstreamConnectionsAreBounded: if there are too many connections to upstreams, an idle connection is closed to
// make room for another upstream. If all connections are busy, a request fails at once.
func TestUpstreamConnectionsAreBounded(t *testing.T) {
	finish, entered := make(chan struct{}), make(chan struct{})
	var slow atomic.Bool
	upstream := newUpstream(t, func(http.ResponseWriter, *http.Request) {
		if slow.Load() {
			entered <- struct{}{}
			<-finish
		}
	})
	s := start(t, "upstream: "+upstream+"\nrules: [{name: a, rate: 1/h, burst: 1000}]")
	s.upstreams.Bound(2)
	slow.Store(true)
	answers := make(chan int, 2)
	for range 2 {
		go func() { answers <- s.get("/").status }()
		<-entered
	}
	assert.EqualValues(t, 2, s.upstreams.Connections())
	assert.Equal(t, 502, s.get("/").status)
	s.waitFor("the connections to upstreams have reached the limit of open files")
	close(finish)
	assert.Equal(t, []int{200, 200}, []int{<-answers, <-answers})
	slow.Store(false)
	s.change("upstream: " + newUpstream(t, func(http.ResponseWriter, *http.Request) {}) +
		"\nrules: [{name: a, rate: 1/h, burst: 1000}]")
	s.upstreams.Bound(2)
	assert.Equal(t, 200, s.get("/").status)
}

func TestALimitOfOpenFilesThatIsTooLow(t *testing.T) {
	s := start(t, "server: {max_connections: 100000000}\n"+one)
	assert.Contains(t, s.log.String(), "the limit of open files is too low for max_connections")
	s = start(t, one)
	assert.NotContains(t, s.log.String(), "the limit of open files is too low")
	assert.Positive(t, s.connections[clients].Max())
}
