package envoy

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir/cmd/internal/envoy/kuadrant"
)

// A gateway is a client of Kuadrant's service over loopback.
type gateway struct {
	t    *testing.T
	conn *grpc.ClientConn
}

func newGateway(t *testing.T, s *Service) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	kuadrant.Register(server, s.Kuadrant())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		<-served
	})
	return &gateway{t, conn}
}

func (g *gateway) call(method string, in, out any) error {
	return g.conn.Invoke(context.Background(), "/"+kuadrant.Name+"/"+method, in, out)
}

func (g *gateway) reserve(text string, amount uint64, ttl ...time.Duration) string {
	g.t.Helper()
	r := asking(g.t, text)
	in, out := &kuadrant.ReserveRequest{Domain: r.Domain, Descriptors: r.Descriptors, Amount: amount}, new(kuadrant.ReserveResponse)
	for _, d := range ttl {
		in.Ttl = durationpb.New(d)
	}
	require.NoError(g.t, g.call("Reserve", in, out))
	require.Equal(g.t, out.GetCode() == rlsv3.RateLimitResponse_OK, out.GetReservationId() != "")
	return out.GetReservationId()
}

func (g *gateway) tryCommit(text, id string, actual uint64) (released bool, err error) {
	r := asking(g.t, text)
	in, out := &kuadrant.CommitRequest{Domain: r.Domain, Descriptors: r.Descriptors, ReservationId: id, ActualAmount: actual}, new(kuadrant.CommitResponse)
	err = g.call("Commit", in, out)
	return out.GetReservationReleased(), err
}

func (g *gateway) commit(text, id string, actual uint64) (released bool) {
	g.t.Helper()
	released, err := g.tryCommit(text, id, actual)
	require.NoError(g.t, err)
	return released
}

func remains(t *testing.T, s *Service, text string) uint32 {
	t.Helper()
	response, err := s.ShouldRateLimit(context.Background(), asking(t, text+" +0"))
	require.NoError(t, err)
	require.Len(t, response.GetStatuses(), 1)
	return response.GetStatuses()[0].GetLimitRemaining()
}

const reservable = `
domain: d
descriptors:
  - {key: window, rate_limit: {unit: hour, requests_per_unit: 1000}}
  - {key: small, rate_limit: {unit: hour, requests_per_unit: 50}}
  - {key: bucket, rate_limit: {algorithm: token-bucket, unit: day, requests_per_unit: 1000, burst: 1000}}
  - {key: sliding, rate_limit: {algorithm: sliding-window, unit: day, requests_per_unit: 1000}}
  - {key: log, rate_limit: {algorithm: sliding-log, unit: day, requests_per_unit: 1000}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 100}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: none, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: calendar, rate_limit: {unit: month, zone: Europe/Berlin, requests_per_unit: 1000}}
`

// TestReserveAndCommit: until the commit, a reservation costs its amount. Afterwards it costs the actual cost, which
// may be lower or higher.
func TestReserveAndCommit(t *testing.T) {
	for _, key := range []string{"window", "calendar", "bucket", "sliding", "log"} {
		t.Run(key, func(t *testing.T) {
			s, _ := newService(t, reservable, Options{})
			g, of := newGateway(t, s), "d: "+key+"=a"
			less, same, more, none := g.reserve(of, 100), g.reserve(of, 100), g.reserve(of, 100), g.reserve(of, 100)
			require.EqualValues(t, 600, remains(t, s, of))
			assert.True(t, g.commit(of, less, 30))
			require.EqualValues(t, 670, remains(t, s, of))
			assert.True(t, g.commit(of, same, 100))
			assert.True(t, g.commit(of, more, 150))
			require.EqualValues(t, 620, remains(t, s, of))
			assert.True(t, g.commit(of, none, 0))
			require.EqualValues(t, 720, remains(t, s, of))
			require.EqualValues(t, 1000, remains(t, s, "d: "+key+"=b"), "another counter")
			require.NotEmpty(t, g.reserve(of, 720))
			require.Empty(t, g.reserve(of, 1))
			assert.False(t, g.commit(of, "", 5), "without an id it is a report")
		})
	}
}

// TestAReservationIsOfAllLimitsOrNone: a reservation takes from all limits or none, and a commit settles each counter.
func TestAReservationIsOfAllLimitsOrNone(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g := newGateway(t, s)
	const all = "d: window=a | bucket=a | small=a | free=a"
	require.NotEmpty(t, g.reserve(all, 30))
	require.Empty(t, g.reserve(all, 30))
	require.EqualValues(t, 970, remains(t, s, "d: window=a"))
	require.EqualValues(t, 970, remains(t, s, "d: bucket=a"))
	id := g.reserve("d: window=a | bucket=a", 100)
	require.True(t, g.commit("d: bucket=a | window=a | small=b", id, 40), "in another order, and with another counter")
	require.EqualValues(t, 930, remains(t, s, "d: window=a"))
	require.EqualValues(t, 930, remains(t, s, "d: bucket=a"))
	require.EqualValues(t, 10, remains(t, s, "d: small=b"), "of which nothing was held")
	require.Empty(t, g.reserve("d: none=a", 1))
	twice := g.reserve("d: window=c | window=c", 10)
	require.True(t, g.commit("d: window=c | window=c", twice, 4))
	require.EqualValues(t, 992, remains(t, s, "d: window=c"))
}

// TestAnAmountAboveTheLimit: an amount above the limit takes the complete limit. So it passes if the complete limit is
// left.
func TestAnAmountAboveTheLimit(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g := newGateway(t, s)
	for _, key := range []string{"small", "bucket"} {
		of := "d: " + key + "=a"
		limit := remains(t, s, of)
		id := g.reserve(of, 1<<63)
		require.NotEmpty(t, id)
		require.Empty(t, g.reserve(of, 1))
		require.Zero(t, remains(t, s, of))
		require.True(t, g.commit(of, id, 10))
		require.Equal(t, limit-10, remains(t, s, of))
		require.Empty(t, g.reserve(of, 1<<63), "not all is left")
	}
}

// TestNoAmount: the amount 0 takes nothing. It is refused if one hit would be refused.
func TestNoAmount(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g := newGateway(t, s)
	for _, key := range []string{"small", "bucket"} {
		of := "d: " + key + "=a"
		limit := remains(t, s, of)
		id := g.reserve(of, 0)
		require.NotEmpty(t, id)
		require.Equal(t, limit, remains(t, s, of))
		require.True(t, g.commit(of, id, uint64(limit)+7))
		require.Empty(t, g.reserve(of, 0))
	}
}

// TestOneCommit: a reservation is settled only once, however often it is committed, and by whichever replica.
func TestOneCommit(t *testing.T) {
	for _, key := range []string{"window", "bucket", "sliding", "log"} {
		s, _ := newService(t, reservable, Options{})
		g, of := newGateway(t, s), "d: "+key+"=a"
		g.reserve(of, 500)
		id := g.reserve(of, 200)
		var released atomic.Int32
		var all sync.WaitGroup
		for i := range uint64(8) {
			all.Go(func() {
				if ok, err := g.tryCommit(of, id, 50); assert.NoError(t, err, "commit %d", i) && ok {
					released.Add(1)
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, 1, released.Load())
		require.EqualValues(t, 450, remains(t, s, of))
		for _, actual := range []uint64{0, 50, 400} {
			require.False(t, g.commit(of, id, actual))
			require.EqualValues(t, 450, remains(t, s, of), "a repeated id changes nothing")
		}
	}
}

// TestALateCommit: a commit after the lifetime of the reservation charges the excess. It gives nothing back, because
// those tokens could belong to other requests.
func TestALateCommit(t *testing.T) {
	for name, late := range map[string]struct{ lifetime, ttl, after time.Duration }{
		"after its own time": {time.Hour, 10 * time.Second, 11 * time.Second},
		"after the lifetime": {10 * time.Second, time.Hour, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newService(t, reservable, Options{ReservationLifetime: late.lifetime})
			g, of := newGateway(t, s), "d: window=a"
			less, more := g.reserve(of, 100, late.ttl), g.reserve(of, 100, late.ttl)
			c.set(c.read().Add(late.after))
			require.False(t, g.commit(of, less, 30))
			require.EqualValues(t, 800, remains(t, s, of), "nothing comes back")
			require.False(t, g.commit(of, more, 130))
			require.EqualValues(t, 770, remains(t, s, of))
			require.False(t, g.commit(of, more, 130))
			require.EqualValues(t, 770, remains(t, s, of), "and that once")
		})
	}
	s, c := newService(t, reservable, Options{ReservationLifetime: 24 * time.Hour})
	g, of := newGateway(t, s), "d: window=a"
	id := g.reserve(of, 400)
	c.set(start.Add(time.Hour))
	require.NotEmpty(t, g.reserve(of, 900))
	require.True(t, g.commit(of, id, 10), "in time, but its window is over")
	require.EqualValues(t, 100, remains(t, s, of), "a newer reservation is not freed")
}

// TestAnIdIsUsedOnceAfterALongTime: the server remembers that an id was used for as long as the id can give something
// back.
func TestAnIdIsUsedOnceAfterALongTime(t *testing.T) {
	s, c := newService(t, reservable, Options{ReservationLifetime: 40 * time.Minute})
	g, of := newGateway(t, s), "d: bucket=a"
	id := g.reserve(of, 900)
	require.True(t, g.commit(of, id, 100))
	for range 12 {
		c.set(c.read().Add(10 * time.Minute))
		before := remains(t, s, of)
		require.False(t, g.commit(of, id, 0))
		require.LessOrEqual(t, remains(t, s, of), before)
	}
}

// TestForgedIds: an id that this server has not sealed is an error, and changes nothing.
func TestForgedIds(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g, of := newGateway(t, s), "d: window=a"
	other, _ := newService(t, reservable, Options{})
	id := g.reserve(of, 100)
	changed := []byte(id)
	if changed[40]++; changed[40] == 'z'+1 || changed[40] == 'Z'+1 || changed[40] == '9'+1 || changed[40] > 'z' {
		changed[40] = 'b'
	}
	forged := map[string]string{
		"text": "a reservation", "short": "AAAA", "zeros": strings.Repeat("A", len(id)), "longer": id + "AAAA", "cut": id[:len(id)-4],
		"changed": string(changed), "padded": id + "=", "of another server": newGateway(t, other).reserve(of, 100),
		"uuid": "2f1c8e2e-5c5b-4d0e-8f38-2b8b6a9c4a11",
	}
	for name, id := range forged {
		_, err := g.tryCommit(of, id, 999)
		require.Equal(t, codes.InvalidArgument, status.Code(err), name)
		require.EqualValues(t, 900, remains(t, s, of), name)
	}
	require.True(t, g.commit(of, id, 0), "the true one is as good as before")
	_, err := g.tryCommit("d: window=a +3", id, 0)
	require.Equal(t, codes.InvalidArgument, status.Code(err), "hits in a descriptor")
	in := &kuadrant.ReserveRequest{Domain: "d", Descriptors: asking(t, of).Descriptors, Amount: 1, Ttl: durationpb.New(-1)}
	require.Equal(t, codes.InvalidArgument, status.Code(g.call("Reserve", in, new(kuadrant.ReserveResponse))))
}

// TestAnIdOfAnotherCounter: the id in a commit is from the reservation of another counter. It gives nothing back, and
// the complete cost counts.
func TestAnIdOfAnotherCounter(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g := newGateway(t, s)
	g.reserve("d: window=b", 300)
	id := g.reserve("d: window=a", 300)
	require.False(t, g.commit("d: window=b", id, 10))
	require.EqualValues(t, 690, remains(t, s, "d: window=b"))
	require.EqualValues(t, 700, remains(t, s, "d: window=a"))
}

// TestReservationsOutliveAConfiguration: a reservation can be committed after a change of the configuration. If its
// counter has moved to another table, nothing is given back.
func TestReservationsOutliveAConfiguration(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g := newGateway(t, s)
	kept, moved := g.reserve("d: window=a", 400), g.reserve("d: bucket=a", 400)
	require.NoError(t, s.SetConfig(compile(t, strings.NewReplacer("requests_per_unit: 1000, burst: 1000", "requests_per_unit: 2000, burst: 2000",
		"unit: hour, requests_per_unit: 1000", "unit: hour, requests_per_unit: 2000").Replace(reservable))))
	require.True(t, g.commit("d: window=a", kept, 100))
	require.EqualValues(t, 1900, remains(t, s, "d: window=a"))
	require.True(t, g.commit("d: bucket=a", moved, 100))
	require.EqualValues(t, 1600, remains(t, s, "d: bucket=a"))
}

// TestARestartWithTheKey: a new process with the same key accepts ids of the previous process. The counters in memory
// are lost, so the complete cost counts.
func TestARestartWithTheKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("random ", 6)), 0o600))
	before, _ := newService(t, reservable, Options{ReservationKey: key})
	id := newGateway(t, before).reserve("d: window=a", 100)
	after, _ := newService(t, reservable, Options{ReservationKey: key})
	g := newGateway(t, after)
	require.False(t, g.commit("d: window=a", id, 30))
	require.EqualValues(t, 970, remains(t, after, "d: window=a"))
	for name, content := range map[string]string{"short": "too short", "long": strings.Repeat("x", 5000)} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := New(Options{ReservationKey: file})
		require.ErrorContains(t, err, "want 32 to 4096 random bytes")
	}
	_, err := New(Options{ReservationKey: "not there"})
	require.ErrorContains(t, err, "envoy: ReservationKey: ")
	_, err = New(Options{ReservationLifetime: time.Millisecond})
	require.ErrorContains(t, err, "want 1s to 24h")
}

// TestCheckAndReport: a check counts nothing, and a report also counts hits beyond the limit.
func TestCheckAndReport(t *testing.T) {
	for _, key := range []string{"small", "bucket"} {
		s, _ := newService(t, reservable, Options{})
		g, of := newGateway(t, s), "d: "+key+"=a"
		limit := remains(t, s, of)
		check := func() rlsv3.RateLimitResponse_Code {
			out := new(rlsv3.RateLimitResponse)
			require.NoError(t, g.call("CheckRateLimit", asking(t, of), out))
			return out.GetOverallCode()
		}
		report := func(hits uint32) {
			in, out := asking(t, of), new(rlsv3.RateLimitResponse)
			in.HitsAddend = hits
			require.NoError(t, g.call("Report", in, out))
			require.Equal(t, rlsv3.RateLimitResponse_OK, out.GetOverallCode())
		}
		for range 3 {
			require.Equal(t, rlsv3.RateLimitResponse_OK, check())
		}
		require.Equal(t, limit, remains(t, s, of))
		report(0)
		require.Equal(t, limit-1, remains(t, s, of), "one hit without a number")
		report(limit + 20)
		require.Equal(t, rlsv3.RateLimitResponse_OVER_LIMIT, check())
	}
}

// TestAReservationInShadowMode: a reservation is never refused, and its complete cost counts.
func TestAReservationInShadowMode(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g := newGateway(t, s)
	for range 3 {
		id := g.reserve("d: shadow=a | window=a", 60)
		require.NotEmpty(t, id)
		require.True(t, g.commit("d: shadow=a | window=a", id, 50))
	}
	require.EqualValues(t, 850, remains(t, s, "d: window=a"))
	require.Zero(t, remains(t, s, "d: shadow=a"))
}

// TestReservationsOfManyLimits: a reservation from too many limits is an error, and takes nothing.
func TestReservationsOfManyLimits(t *testing.T) {
	s, _ := newService(t, reservable, Options{})
	g := newGateway(t, s)
	several := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("window=%d", i)
		}
		return "d: " + strings.Join(all, " | ")
	}
	id := g.reserve(several(64), 10)
	require.Less(t, len(id), 8<<10)
	require.True(t, g.commit(several(64), id, 1))
	require.EqualValues(t, 999, remains(t, s, "d: window=63"))
	in := &kuadrant.ReserveRequest{Domain: "d", Descriptors: asking(t, several(65)).Descriptors, Amount: 1}
	require.Equal(t, codes.InvalidArgument, status.Code(g.call("Reserve", in, new(kuadrant.ReserveResponse))))
	require.EqualValues(t, 1000, remains(t, s, "d: window=64"))
}

// TestReservationsWithoutRoom: without room to remember that an id was used, the id gives no tokens back.
func TestReservationsWithoutRoom(t *testing.T) {
	s, _ := newService(t, reservable, Options{MaxKeys: 1})
	g, of := newGateway(t, s), "d: window=a"
	known := 0
	for range 40 {
		id := g.reserve(of, 20)
		require.NotEmpty(t, id)
		before := remains(t, s, of)
		if g.commit(of, id, 10) {
			known++
			require.Equal(t, before+10, remains(t, s, of))
		} else {
			require.Equal(t, before, remains(t, s, of))
		}
		require.False(t, g.commit(of, id, 10))
	}
	require.Positive(t, known)
	require.Less(t, known, 40)
}
