package redislimit

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/redislimit/internal/journal"
	"github.com/weir-go/weir/redislimit/internal/redistest"
)

// processes returns n clients, each for another process.
func processes(t *testing.T, server *redistest.Server, n int) (clients []*Client) {
	t.Helper()
	for range n {
		client, err := Open(t.Context(), server.URL())
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, client.Close()) })
		clients = append(clients, client)
	}
	return clients
}

// A limiter that starts charges the debt of a limiter that ended while its store was lost.
func TestDebtsOutliveALimiter(t *testing.T) {
	for name, c := range map[string]struct {
		policy, quota, next engine.Policy
		options             []Option
	}{
		"token bucket":      {policy: engine.TokenBucket(engine.Per(1, time.Hour), 40)},
		"other numbers":     {policy: engine.TokenBucket(engine.Per(1, time.Hour), 40), next: engine.TokenBucket(engine.Per(2, time.Hour), 50)},
		"fixed window":      {policy: engine.FixedWindow(40, time.Hour)},
		"sliding log":       {policy: engine.SlidingLog(40, time.Hour)},
		"days":              {policy: engine.CalendarWindow(40, engine.Month, time.UTC)},
		"quota":             {policy: engine.TokenBuckets(100 * time.Hour), quota: engine.TokenBucket(engine.Per(1, time.Hour), 40)},
		"another quota":     {policy: engine.FixedWindow(400, time.Hour), quota: engine.FixedWindow(40, time.Hour)},
		"quota of a bucket": {policy: engine.TokenBucket(engine.Per(1, time.Hour), 400), quota: engine.TokenBucket(engine.Per(1, time.Hour), 40)},
		"aligned quota":     {policy: engine.FixedWindow(400, time.Hour).Aligned(), quota: engine.FixedWindow(40, time.Hour).Aligned()},
		"sliding quota":     {policy: engine.SlidingWindow(400, time.Hour), quota: engine.SlidingWindow(40, time.Hour)},
		"quota of a log":    {policy: engine.SlidingLog(400, time.Hour), quota: engine.SlidingLog(40, time.Hour)},
		"days of a quota":   {policy: engine.CalendarWindow(400, engine.Month, time.UTC), quota: engine.CalendarWindow(40, engine.Month, time.UTC)},
		"tier":              {policy: engine.FixedWindow(400, time.Hour), options: []Option{Tiers(engine.Unlimited(), engine.FixedWindow(40, time.Hour))}},
		"less than a token": {policy: engine.FixedWindow(40, time.Hour), options: []Option{LocalShare(0.01)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			stem := filepath.Join(t.TempDir(), "debts")
			clients := processes(t, server, 2)
			begin := func(client *Client, policy engine.Policy) (*Limiter, Quota) {
				l, err := New(client, "debts", policy, append([]Option{Nodes(2), InMode(Strict), DebtFiles(stem)}, c.options...)...)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, l.Close()) })
				of := l
				if len(l.tiers) > 0 {
					of = l.tiers[0]
				}
				q := of.ownQuota
				if c.quota != (engine.Policy{}) {
					q, err = l.Quota(c.quota)
					require.NoError(t, err)
				}
				return l, q
			}
			l, q := begin(clients[0], c.policy)
			lose(t, server, q)
			admitted := uint64(0)
			for range 40 {
				if d, err := q.Take(t.Context(), "k", 1); err == nil && d.Allowed {
					admitted++
				}
			}
			if name == "less than a token" {
				assert.Zero(t, admitted, "the share earns a token in 100 hours")
				require.Zero(t, q.limiter.owe(&q, "k", 20))
				admitted = 20
			}
			require.EqualValues(t, 20, admitted, "the share")
			require.NoError(t, l.Close())
			require.NoError(t, clients[0].Close())
			files, err := filepath.Glob(stem + "*")
			require.NoError(t, err)
			require.Len(t, files, 1)

			if c.next == (engine.Policy{}) {
				c.next = c.policy
			}
			l, q = begin(clients[1], c.next)
			d, err := q.Take(t.Context(), "k", 6)
			require.NoError(t, err)
			assert.False(t, d.Allowed, "a restart hands out no second share")
			server.Resume()
			require.Eventually(t, func() bool { owing, _ := l.countAllDebts(); return owing == 0 }, 20*time.Second, time.Millisecond)
			require.Eventually(t, func() bool { d, err = q.Peek(t.Context(), "k", 1); return err == nil && !l.isLost("k") }, 20*time.Second, time.Millisecond)
			assert.LessOrEqual(t, d.Remaining, q.policy.Limit()-admitted)
			if l.client.Health().Timeouts == 0 {
				assert.Equal(t, q.policy.Limit()-admitted, d.Remaining, "no answer was lost")
			}
			require.NoError(t, l.Close())
			files, err = filepath.Glob(stem + "*")
			require.NoError(t, err)
			assert.Empty(t, files)
		})
	}
}

// A running limiter takes over the debts of another process, but not before that process has ended.
func TestAnotherLimiterTakesDebtsOver(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stem := filepath.Join(t.TempDir(), "debts")
	node := func() *Limiter {
		client, err := Open(t.Context(), server.URL(), Timeout(time.Second))
		require.NoError(t, err)
		l, err := New(client, "debts", engine.FixedWindow(40, time.Hour), Nodes(2), InMode(Strict), DebtFiles(stem))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, l.Close()); assert.NoError(t, client.Close()) })
		return l
	}
	old, other := node(), node()
	lose(t, server, old.ownQuota)
	require.True(t, old.share.take("k", &old.ownQuota, 15).Allowed)
	other.takeOver(false)
	assert.Zero(t, other.debts.Owed(debtID{key: "k"}), "its process lives")
	require.NoError(t, old.Close())
	require.NoError(t, old.client.Close())
	server.Resume()
	require.Eventually(t, func() bool {
		d, err := other.Peek(t.Context(), "k", 1)
		return err == nil && d.Remaining <= 25
	}, 30*time.Second, time.Millisecond)
	assert.EqualValues(t, 20, other.share.Peek(other.share.Key("k"), 1).Remaining, "its own share is not spent")
}

// The overdraft of leases is in the file only while the store is lost.
func TestDebtsOfLeasesAreKept(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	clients := processes(t, server, 2)
	stem := filepath.Join(t.TempDir(), "debts")
	begin := func(client *Client) *Limiter {
		l, err := New(client, "debts", engine.FixedWindow(3_600_000, time.Hour), Nodes(2), OnLoss(FailClosed), DebtFiles(stem))
		require.NoError(t, err)
		require.Equal(t, Leased, l.Mode())
		return l
	}
	l := begin(clients[0])
	for l.Stats().Debt == 0 { // a renewal that is in progress when the server is paused leaves a debt
		server.Pause()
		require.Eventually(t, func() bool { l.Allow("k"); return l.isLost("k") }, 20*time.Second, time.Microsecond)
		if l.Stats().Debt == 0 {
			server.Resume()
			require.Eventually(t, func() bool { return !l.isLost("k") }, 20*time.Second, time.Millisecond)
			require.Eventually(t, func() bool { return l.Allow("k") && l.Stats().Held > 0 }, 20*time.Second, time.Microsecond)
		}
	}
	debt := l.Stats().Debt
	said := func() (owed uint64) {
		content, err := os.ReadFile(l.debtFile.Path())
		require.NoError(t, err)
		copied := stem + ".copy"
		require.NoError(t, os.WriteFile(copied+".AAAAAAAAAAAAAAAAAAAAAAAAAA.debts", content, 0o600))
		j, err := journal.Open(copied, l.agreement.baseSettings+" name=debts", func(err error) { t.Error(err) })
		require.NoError(t, err)
		require.NoError(t, j.TakeOver(func(f journal.Leftover) bool {
			require.NoError(t, f.Err)
			for e, n := range f.Owed {
				assert.True(t, e.IsLease)
				owed += n
			}
			return true
		}))
		require.NoError(t, j.Close())
		return owed
	}
	require.Eventually(t, func() bool { return said() == debt }, 20*time.Second, time.Millisecond)
	require.NoError(t, l.Close())
	require.NoError(t, clients[0].Close())
	l = begin(clients[1])
	assert.EqualValues(t, debt, l.debts.Owed(debtID{key: "k"}))
	server.Resume()
	require.Eventually(t, func() bool { owing, _ := l.countAllDebts(); return owing == 0 }, 20*time.Second, time.Millisecond)
	assert.Zero(t, said())
	require.NoError(t, l.Close())
}

// A limiter takes over no debt of another name, and none from a file so old that the tokens have come back.
func TestOldAndForeignDebts(t *testing.T) {
	server := redistest.Start(t)
	var log bytes.Buffer
	client, err := Open(t.Context(), server.URL(), Timeout(10*time.Second), Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	defer client.Close()
	stem := filepath.Join(t.TempDir(), "debts")
	begin := func(name string, p engine.Policy) *Limiter {
		l, err := New(client, name, p, InMode(Strict), DebtFiles(stem))
		require.NoError(t, err)
		return l
	}
	hour := engine.FixedWindow(40, time.Hour)
	for _, age := range []time.Duration{3*time.Hour - time.Minute, 3*time.Hour + time.Second} {
		l := begin("a", hour)
		path := l.debtFile.Path()
		l.debtFile.noteLease("k", 7)
		require.NoError(t, l.debtFile.Close())
		require.NoError(t, l.Close())
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
		l = begin("b", hour)
		l.takeOver(false)
		require.NoError(t, l.Close())
		assert.FileExists(t, path)
		l = begin("a", hour)
		require.NoError(t, l.Settle(t.Context()))
		d, err := l.Peek(t.Context(), "k", 1)
		require.NoError(t, err)
		assert.EqualValues(t, 33, d.Remaining, age)
		require.NoError(t, l.Close())
		assert.NoFileExists(t, path)
	}
	assert.Equal(t, 2, bytes.Count(log.Bytes(), []byte("is not taken over")))
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("has come back by time since")))

	_, err = New(client, "a", hour, DebtFiles("debts"))
	assert.ErrorContains(t, err, `redislimit: DebtFiles("debts"): want a full path`)
	_, err = New(client, "a", hour, DebtFiles(filepath.Join(stem, "none")))
	assert.ErrorContains(t, err, "redislimit: a: the file of what it owes")
}

// A closed limiter has a file only while it owes something.
func TestDebtsOfAClosedLimiterAreKept(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := processes(t, server, 1)[0]
	stem := filepath.Join(t.TempDir(), "debts")
	l, err := New(client, "debts", engine.FixedWindow(40, time.Hour), Nodes(2), InMode(Strict), DebtFiles(stem),
		Tiers(engine.FixedWindow(80, time.Hour)))
	require.NoError(t, err)
	files := func() []string {
		files, err := filepath.Glob(stem + "*")
		require.NoError(t, err)
		return files
	}
	h, _, err := l.Hold(t.Context(), "k", 1)
	require.NoError(t, err)
	lose(t, server, l.ownQuota)
	require.NoError(t, l.Close())
	require.Empty(t, files())
	assert.Zero(t, h.Settle(3))
	assert.Len(t, files(), 1, "of this limiter")
	require.True(t, l.tiers[0].share.take("k", &l.tiers[0].ownQuota, 5).Allowed)
	assert.Len(t, files(), 1, "of all tiers")
	server.Resume()
	require.NoError(t, l.Settle(t.Context()))
	require.Eventually(t, func() bool { return len(files()) == 0 }, 20*time.Second, time.Millisecond)

	server.Pause()
	require.Eventually(t, func() bool { _, _ = l.Peek(t.Context(), "k", 1); return l.isLost("k") }, 20*time.Second, time.Millisecond)
	require.True(t, l.tiers[0].share.take("k", &l.tiers[0].ownQuota, 5).Allowed)
	require.NoError(t, client.Close())
	require.Len(t, files(), 1)
	j, err := journal.Open(stem, l.agreement.baseSettings+" name=debts", func(err error) { t.Error(err) })
	require.NoError(t, err)
	owed := map[journal.Entry]uint64{}
	require.NoError(t, j.TakeOver(func(f journal.Leftover) bool { owed = f.Owed; return true }))
	assert.Equal(t, map[journal.Entry]uint64{{Tier: 1, Key: "k"}: 5}, owed)
	require.NoError(t, j.Close())
}
