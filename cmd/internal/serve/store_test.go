package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/internal/freeport"
)

// stored returns a rule file with the constant named one, and with a store that two machines share.
func stored(address, more string) string {
	return administered + "store: {url: \"redis://" + address + "\", timeout: 2s, nodes: 2" + more + "}\n" + one
}

// startStore starts a store. A test can stop it and restart it at the same address.
func startStore(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	store := miniredis.NewMiniRedis()
	require.NoError(t, store.StartAddr(freeport.Address(t)))
	t.Cleanup(store.Close)
	return store
}

func TestServersShareALimit(t *testing.T) {
	store := miniredis.RunT(t)
	a, b := start(t, stored(store.Addr(), "")), start(t, stored(store.Addr(), ""))
	var got []string
	for range 4 {
		got = append(got, a.statuses(1), b.statuses(1))
	}
	assert.Equal(t, "200 200 200 200 200 429 429 429", strings.Join(got, " "))
	_, header := a.ask("/")
	assert.Equal(t, `"default";q=5;w=18000`, header.Get("RateLimit-Policy"))
	status, metrics := a.askAdmin("/metrics")
	assert.Equal(t, 200, status)
	assert.Contains(t, metrics, "weir_store_lost_parts 0\n")
	assert.Contains(t, metrics, `weir_rule_leases{rule="default"} 0`)
	assert.Contains(t, metrics, `weir_rule_store_fallbacks_total{rule="default"} 0`)
	assert.NotContains(t, metrics, "weir_table_bytes", "the table is the store's")
	_, state := a.askAdmin("/state.json")
	assert.Contains(t, state, `"mode":"strict"`)

	a.change(stored(store.Addr(), ", on_loss: open"))
	assert.Equal(t, "429", a.statuses(1), "the store keeps what is used up")
	a.change(strings.Replace(stored(store.Addr(), ""), "burst: 5", "burst: 6", 1))
	assert.Contains(t, a.log.String(), "the tokens that a key has used still count")
	assert.Equal(t, "200 429", a.statuses(2), "a burst of 6, of which 5 are used up")
	a.change(one)
	assert.Contains(t, a.log.String(), "because it was kept in the store and is now only on this machine")
	assert.Equal(t, "200 200 200 200 200 429", a.statuses(6))
}

// TestMachinesWithOtherNumbers: machines share one limit even if their rules have different numbers. The log, the page
// and the metrics report the difference.
func TestMachinesWithOtherNumbers(t *testing.T) {
	store := miniredis.RunT(t)
	a := start(t, stored(store.Addr(), ""))
	assert.Equal(t, "200 200 200", a.statuses(3))
	_, metrics := a.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_rule_store_differs{rule="default"} 0`)
	b := start(t, strings.Replace(stored(store.Addr(), ""), "burst: 5", "burst: 6", 1))
	assert.Equal(t, "200 200 200 429", b.statuses(4), "of six, three are used")
	b.waitFor("a node has this limit with other numbers")
	_, metrics = b.askAdmin("/metrics")
	assert.Contains(t, metrics, `weir_rule_store_differs{rule="default"} 1`)
	_, state := b.askAdmin("/state.json")
	assert.Contains(t, state, `burst 5`)
	assert.Contains(t, state, `"differs":`)
}

// TestStorePasswords: a password may be in the URL, or in a file that is read for each connection.
func TestStorePasswords(t *testing.T) {
	store := startStore(t)
	store.RequireAuth("first")
	assert.Equal(t, "200", start(t, stored(":first@"+store.Addr(), "")).statuses(1))

	name := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(name, []byte("first\n"), 0o600))
	s := start(t, stored(store.Addr(), ", on_loss: closed, password_file: "+name))
	assert.Equal(t, "200", s.statuses(1))
	address := store.Addr()
	store.Close()
	store.RequireAuth("second")
	require.NoError(t, store.StartAddr(address))
	require.Eventually(t, func() bool { return s.statuses(1) == "503" }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(name, []byte("second\n"), 0o600))
	require.Eventually(t, func() bool { return s.statuses(1) == "200" }, 10*time.Second, 10*time.Millisecond)
	assert.NotContains(t, s.log.String(), "second")
}

func TestWhatALostStoreMeans(t *testing.T) {
	for _, c := range []struct{ policy, want string }{
		{"share", "200 200 429 429"}, // half of five, rounded down
		{"closed", "503 503 503 503"},
		{"open", "200 200 200 200"},
	} {
		t.Run(c.policy, func(t *testing.T) {
			store := miniredis.RunT(t)
			s := start(t, "server: {shutdown_timeout: 100ms}\n"+stored(store.Addr(), ", on_loss: "+c.policy))
			assert.Equal(t, "200 200 200 200 200", s.statuses(5)) // not one more, because a refusal would be remembered
			store.Close()
			assert.Equal(t, c.want, s.statuses(4))
			_, metrics := s.askAdmin("/metrics")
			assert.Contains(t, metrics, `weir_rule_store_fallbacks_total{rule="default"} 4`)
			assert.NotContains(t, metrics, "weir_store_failures_total 0\n")
			require.Eventually(t, func() bool { // the store is lost when it has not answered for 200 ms
				s.statuses(1)
				_, metrics = s.askAdmin("/metrics")
				return strings.Contains(metrics, "weir_store_lost_parts 1\n")
			}, 10*time.Second, 10*time.Millisecond)
		})
	}
}

// TestTheEndSettlesWithTheStore: when a server ends, it charges the store for tokens that it admitted while the store
// was lost. The store may come back as late as during shutdown_timeout. If it does not, the log says that the tokens
// were not charged.
func TestTheEndSettlesWithTheStore(t *testing.T) {
	for _, back := range []bool{true, false} {
		store := startStore(t)
		text := "server: {shutdown_timeout: " + map[bool]string{true: "1m", false: "200ms"}[back] + "}\n" + stored(store.Addr(), "")
		s := start(t, text)
		assert.Equal(t, "200", s.statuses(1))
		address := store.Addr()
		store.Close()
		assert.Equal(t, "200 200 429", s.statuses(3)) // half of five, rounded down
		ended := make(chan struct{})
		go func() { defer close(ended); s.stop() }()
		s.waitFor("waiting for requests in progress")
		if !back {
			<-ended
			assert.Contains(t, s.log.String(), "admitted requests are not charged to the store")
			continue
		}
		require.NoError(t, store.StartAddr(address))
		<-ended
		assert.NotContains(t, s.log.String(), "is not charged")
		assert.Equal(t, "200 200 429", start(t, stored(address, "")).statuses(3), "three of five are used")
	}
}

func TestALeasedRuleTellsItsLeases(t *testing.T) {
	store := miniredis.RunT(t)
	s := start(t, administered+"store: {url: \"redis://"+store.Addr()+"\", timeout: 2s}\n"+
		"rules: [{name: fast, rate: 1000/s, burst: 1000, max_keys: 100}]\n")
	require.Eventually(t, func() bool {
		s.statuses(10)
		_, state := s.askAdmin("/state.json")
		_, metrics := s.askAdmin("/metrics")
		return strings.Contains(state, `"mode":"leased"`) && strings.Contains(metrics, `weir_rule_leases{rule="fast"} 1`)
	}, 20*time.Second, time.Millisecond)
	held := s.current.Load().stored["fast"]
	s.change(administered + "headers: legacy\nstore: {url: \"redis://" + store.Addr() +
		"\", timeout: 2s}\nrules: [{name: fast, rate: 1000/s, burst: 1000, max_keys: 100}]\n")
	assert.Same(t, held, s.current.Load().stored["fast"], "its tokens are kept")
}

func TestAStoreThatDoesNotAnswer(t *testing.T) {
	address := freeport.Address(t)
	file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\n"+
		strings.TrimPrefix(stored(address, ", on_loss: closed"), administered)))
	require.NoError(t, err)
	_, err = Start(Config{File: file})
	require.ErrorContains(t, err, fmt.Sprintf("store: the store at %s does not answer", address))

	store := miniredis.RunT(t)
	s := start(t, stored(store.Addr(), ""))
	assert.Equal(t, "200 200", s.statuses(2))
	s.write(stored(address, ""))
	require.ErrorContains(t, s.Reload(), address)
	assert.Equal(t, "200 200 200 429", s.statuses(4), "everything stays as it was")
}

// TestAStartWithoutTheStore: if the store does not answer at the start, on_loss decides until it does. With on_loss:
// closed, the server does not start.
func TestAStartWithoutTheStore(t *testing.T) {
	for _, c := range []struct{ policy, want, later string }{
		{"share", "200 200 429 429", "200 200 200 429"}, // half of five, and then the rest
		{"open", "200 200 200 200", "200 200 200 200 200 429"},
	} {
		t.Run(c.policy, func(t *testing.T) {
			store := startStore(t)
			address := store.Addr()
			store.Close()
			s := start(t, stored(address, ", on_loss: "+c.policy))
			_, metrics := s.askAdmin("/metrics")
			assert.Contains(t, metrics, "weir_store_lost_parts 1\n")
			assert.Contains(t, s.log.String(), `"the store is lost" kind=connection`)
			assert.Equal(t, c.want, s.statuses(4))

			require.NoError(t, store.StartAddr(address))
			require.Eventually(t, func() bool {
				_, metrics = s.askAdmin("/metrics")
				return strings.Contains(metrics, "weir_store_lost_parts 0\n") &&
					(c.policy == "open" || slices.ContainsFunc(store.Keys(), isCharged))
			}, 20*time.Second, 10*time.Millisecond)
			require.Eventually(t, func() bool { // the log is written after the metric counts the return
				return strings.Contains(s.log.String(), "the store is back")
			}, 20*time.Second, 10*time.Millisecond)
			require.Eventually(t, func() bool { // the limiter follows within 100 ms
				_, err := s.current.Load().stored["default"].Value.Peek(t.Context(), "another", 1)
				return err == nil
			}, 20*time.Second, 10*time.Millisecond)
			assert.Equal(t, c.later, s.statuses(strings.Count(c.later, " ")+1))
		})
	}
}

// isCharged reports whether a key in the store belongs to a client whose request was charged.
func isCharged(key string) bool {
	return !strings.Contains(key, "settings") && !strings.Contains(key, "trial")
}
