package source

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// A world has go-control-plane's server, a client, and a record of their messages, in a synctest bubble.
type world struct {
	t      *testing.T
	cache  cache.SnapshotCache
	up     atomic.Pointer[bufconn.Listener] // nil while the server is down
	server *grpc.Server

	guard sync.Mutex // protects the fields below
	told
}

type told struct {
	streams  int
	refusals []string
	domains  int // the number of domains of the last accepted configuration
	lost     []time.Duration
}

func (w *world) note(note func()) {
	w.guard.Lock()
	defer w.guard.Unlock()
	note()
}

func (w *world) now() told {
	w.guard.Lock()
	defer w.guard.Unlock()
	return w.told
}

func newWorld(t *testing.T) *world {
	return &world{t: t, cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil)}
}

func (w *world) watch(backoff Backoff) {
	x := &XDS{
		Node: &corev3.Node{Id: "n"}, Backoff: backoff,
		Lost: func(_ error, retry time.Duration) { w.note(func() { w.lost = append(w.lost, retry) }) },
		Dial: func() (*grpc.ClientConn, error) {
			return grpc.NewClient("passthrough:xds", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					if l := w.up.Load(); l != nil {
						return l.DialContext(ctx)
					}
					return nil, net.ErrClosed
				}))
		},
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	go x.Watch(ctx, func(c *config.Config, _ []*yamlfile.Error, err error) error {
		if err == nil {
			w.note(func() { w.domains = c.Domains() })
		}
		return err
	})
	w.t.Cleanup(func() { cancel(); w.stop(); synctest.Wait() })
}

func (w *world) serve() {
	w.server = grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(w.server, server.NewServer(w.t.Context(), w.cache,
		server.CallbackFuncs{
			StreamOpenFunc: func(context.Context, int64, string) error { w.note(func() { w.streams++ }); return nil },
			StreamRequestFunc: func(_ int64, request *discoveryv3.DiscoveryRequest) error {
				if detail := request.GetErrorDetail(); detail != nil {
					text := request.GetVersionInfo() + " " + detail.GetMessage()
					w.note(func() { w.refusals = append(w.refusals, text) })
				}
				return nil
			},
		}))
	l := bufconn.Listen(1 << 16)
	go func(s *grpc.Server) { _ = s.Serve(l) }(w.server)
	w.up.Store(l)
}

func (w *world) stop() {
	w.up.Store(nil)
	if w.server != nil {
		w.server.Stop()
	}
}

func (w *world) set(version string, domains ...string) {
	var all []types.Resource
	for _, name := range domains {
		all = append(all, &configv3.RateLimitConfig{Name: "of " + name, Domain: name})
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: all})
	require.NoError(w.t, err)
	require.NoError(w.t, w.cache.SetSnapshot(w.t.Context(), "n", snapshot))
	synctest.Wait()
}

// sleep waits for the duration. It returns after everything that is due by then has happened.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var tenSeconds = Backoff{Initial: 10 * time.Second, Max: time.Minute, Factor: 2}

// TestABadSnapshotIsRefusedOnce: go-control-plane repeats a refused snapshot at once. So the client waits longer before
// each further refusal. During such a wait, it still accepts a valid snapshot.
func TestABadSnapshotIsRefusedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.serve()
		w.watch(tenSeconds)
		w.set("1", "a", "b")
		assert.Equal(t, 2, w.now().domains)
		w.set("2", "a", "")
		assert.Equal(t, []string{"1 of : config file cannot have empty domain"}, w.now().refusals)
		sleep(10*time.Second - 1)
		assert.Len(t, w.now().refusals, 1)
		sleep(5 * time.Minute)
		assert.Len(t, w.now().refusals, 7, "after 10, 30, 70, 130, 190 and 250 seconds")
		assert.Equal(t, 2, w.now().domains, "the last good one stays")
		w.set("3", "a", "b", "c")
		sleep(time.Minute)
		assert.Equal(t, 3, w.now().domains)
		w.set("4", "a")
		assert.Equal(t, 1, w.now().domains, "the next one comes at once")
		before := len(w.now().refusals)
		w.set("5", "")
		assert.Len(t, w.now().refusals, before+1, "the first refusal after a good one goes out at once")
		assert.Equal(t, 1, w.now().streams)
	})
}

// TestTheServerIsAskedAgain: the client calls an unavailable server again and again, with longer and longer waits.
// After an answer of the server, the waits are short again.
func TestTheServerIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("1", "a")
		w.watch(tenSeconds)
		sleep(4 * time.Minute)
		assert.Equal(t, []time.Duration{10e9, 20e9, 40e9, 60e9, 60e9, 60e9}, w.now().lost)
		w.serve()
		sleep(time.Minute)
		assert.Equal(t, 1, w.now().domains)

		w.note(func() { w.lost = nil })
		w.stop()
		synctest.Wait()
		assert.Equal(t, []time.Duration{10e9}, w.now().lost)
		w.set("2", "a", "b")
		w.serve()
		sleep(10 * time.Second)
		assert.Equal(t, 2, w.now().domains)
	})
}

func TestBackoff(t *testing.T) {
	flat := Backoff{Initial: time.Second, Max: time.Minute, Factor: 0.5}
	assert.Equal(t, time.Second, flat.wait(0))
	assert.Equal(t, time.Second, flat.wait(100))
	assert.Equal(t, time.Minute, tenSeconds.wait(10_000))
	assert.Equal(t, time.Hour, Backoff{Initial: time.Hour, Max: time.Minute}.wait(1))
	some := Backoff{Initial: time.Second, Max: time.Minute, Jitter: true}
	different := map[time.Duration]bool{}
	for range 1000 {
		wait := some.wait(0)
		different[wait] = true
		assert.LessOrEqual(t, wait, time.Second)
		assert.GreaterOrEqual(t, wait, time.Second/2)
	}
	assert.Greater(t, len(different), 900)
}
