package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/leakcheck"
	"github.com/weir-go/weir/limits"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A reader is a client of the event stream. Write blocks until the reader takes the event.
type reader struct {
	header http.Header
	events chan string
	ended  chan struct{}
	leave  context.CancelFunc
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Flush()              {}
func (r *reader) Write(p []byte) (int, error) {
	r.events <- string(p)
	return len(p), nil
}

func watch(a *Admin) *reader {
	ctx, leave := context.WithCancel(context.Background())
	r := &reader{http.Header{}, make(chan string), make(chan struct{}), leave}
	go func() {
		defer close(r.ended)
		a.Handler().ServeHTTP(r, httptest.NewRequestWithContext(ctx, "GET", "http://localhost/events", nil))
	}()
	return r
}

// next takes the next event, checks its name, and decodes its data.
func (r *reader) next(t *testing.T, name string, data any) {
	t.Helper()
	text, begins := strings.CutPrefix(<-r.events, "event: "+name+"\ndata: ")
	require.True(t, begins, "want %s, got %s", name, text)
	require.NoError(t, json.Unmarshal([]byte(text), data))
}

func oneRule() []Rule { return []Rule{{Name: "login"}} }

func TestEventsEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, Config{Rules: oneRule})
		r := watch(a)
		var past historyView
		r.next(t, "history", &past)
		assert.Equal(t, historyView{1, 1, points, map[string]map[string][]float32{
			"login": {"allowed": {0}, "refused": {0}, "shadow_refused": {0}}}}, past)
		var now state
		r.next(t, "state", &now)
		assert.Equal(t, uint64(1), now.Seq)
		for range 3 {
			a.Observe("login", limits.Allowed)
		}
		a.Observe("login", limits.Refused)
		r.next(t, "state", &now)
		assert.Equal(t, uint64(2), now.Seq)
		assert.Equal(t, float32(3), now.Rules[0].Rate["allowed"])
		assert.Equal(t, float32(1), now.Rules[0].Rate["refused"])
		r.next(t, "state", &now)
		assert.Equal(t, float32(0), now.Rules[0].Rate["allowed"])
		assert.Equal(t, uint64(3), now.Rules[0].Total["allowed"])

		r.leave()
		<-r.ended
		assert.False(t, a.watchers.hasAny())
	})
}

// TestSlowReader: a slow reader does not delay other readers. Later it gets the history that it has missed.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, Config{Rules: oneRule})
		slow, quick := watch(a), watch(a)
		var past historyView
		var now state
		for _, r := range []*reader{slow, quick} {
			r.next(t, "history", &past)
			r.next(t, "state", &now)
		}
		for want := uint64(2); want <= 5; want++ {
			a.Observe("login", limits.Refused)
			quick.next(t, "state", &now)
			assert.Equal(t, want, now.Seq)
		}
		slow.next(t, "state", &now) // this event was already being written
		assert.Equal(t, uint64(2), now.Seq)
		slow.next(t, "history", &past)
		assert.Equal(t, []float32{0, 1, 1, 1, 1}, past.Rules["login"]["refused"])
		slow.next(t, "state", &now)
		assert.Equal(t, uint64(5), now.Seq)

		require.NoError(t, a.Close()) // ends the streams
		<-slow.ended
		<-quick.ended
	})
}

func TestAtMostSoManyWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, Config{Rules: oneRule})
		var readers []*reader
		for range maxWatchers {
			readers = append(readers, watch(a))
		}
		synctest.Wait()
		w := request(a, "GET", "http://localhost/events", "")
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		for _, r := range readers {
			r.leave()
			<-r.events
			<-r.events
			<-r.ended
		}
	})
}

// TestTheHistoryOfFiveMinutes: the history has at most five minutes. If a tick comes late, the rates are for the time
// that has really passed.
func TestTheHistoryOfFiveMinutes(t *testing.T) {
	var h history
	now, counts := time.Unix(1e9, 0), totals{}
	read := func(string) totals { return counts }
	h.tick(now, []string{"a"}, read)
	for i := range points + 10 {
		counts[limits.Allowed] += uint64(i)
		now = now.Add(2 * time.Second)
		h.tick(now, []string{"a"}, read)
	}
	past, ok := h.view("5m")
	require.True(t, ok)
	line := past.Rules["a"]["allowed"]
	require.Len(t, line, points)
	assert.Equal(t, float32(5), line[0])
	assert.Equal(t, float32(points+9)/2, line[points-1])

	h.tick(now.Add(time.Second), []string{"b"}, read)
	_, rates := h.latest()
	assert.Equal(t, map[string][numOutcomes]float32{"b": {}}, rates, "what was counted before is not of this second")
	counts[limits.Allowed]++
	h.tick(now, []string{"b"}, read)
	_, rates = h.latest()
	assert.Zero(t, rates["b"][limits.Allowed], "a clock that was set back")
}

// TestTheHistoryOfADay: the histories of an hour and of a day have only the mean rate of each step.
func TestTheHistoryOfADay(t *testing.T) {
	var h history
	now, counts := time.Unix(1e9, 0), totals{}
	read := func(string) totals { return counts }
	const seconds = 30 * 3600
	for i := 1; i <= seconds; i++ {
		counts[limits.Allowed] += uint64(i)
		if i%10 == 3 {
			counts[limits.Refused] += 5
		}
		h.tick(now, []string{"a"}, read)
		now = now.Add(time.Second)
	}
	for name, step := range map[string]int{"1h": 10, "24h": 300} {
		past, ok := h.view(name)
		require.True(t, ok)
		assert.Equal(t, uint64(step), past.Step)
		line := past.Rules["a"]["allowed"]
		require.Len(t, line, int(past.Points))
		for i := range line {
			last := seconds - (len(line)-1-i)*step // the last second of the step
			require.InDelta(t, float64(last)-float64(step-1)/2, line[i], 0.1, "%s %d", name, i)
		}
		for _, refused := range past.Rules["a"]["refused"] {
			require.Equal(t, float32(0.5), refused)
		}
		assert.Equal(t, 86400/24*map[string]uint64{"1h": 1, "24h": 24}[name], past.Step*past.Points)
	}
	_, ok := h.view("7d")
	assert.False(t, ok)
}

func TestAskingForAHistory(t *testing.T) {
	a := start(t, Config{Rules: func() []Rule { return []Rule{{Name: "a"}} }})
	var past historyView
	w := get(a, "/history.json?span=24h")
	require.Equal(t, http.StatusOK, w.Code)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &past))
	assert.Equal(t, uint64(300), past.Step)
	w = get(a, "/history.json?span=%3Cb%3E")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "want 5m, 1h, 24h")
}
