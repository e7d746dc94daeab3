package caddylimit_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testcaddy"
	"github.com/weir-go/weir/caddylimit/internal/testprogram"
	"github.com/weir-go/weir/internal/freeport"
)

func startRedis(t *testing.T, options ...string) (string, *testprogram.Process) {
	t.Helper()
	return startRedisAt(t, freeport.Address(t), options...)
}

func startRedisAt(t *testing.T, address string, options ...string) (string, *testprogram.Process) {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	process := testprogram.Run(t, testprogram.Program(t, "redis-server"),
		append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir()}, options...)...)
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_, err = io.WriteString(conn, "PING\r\n")
			require.NoError(t, err)
			answer := make([]byte, 5)
			_, err = io.ReadFull(conn, answer)
			require.NoError(t, conn.Close())
			if err == nil && (string(answer) == "+PONG" || string(answer) == "-NOAU") {
				return address, process
			}
		}
		select {
		case <-process.Exited:
			t.Fatal(process.Output.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestLimitsInAStore: both modules count in the store. A second zone with the same name and numbers shares the count,
// like a zone on another machine.
func TestLimitsInAStore(t *testing.T) {
	store, _ := startRedis(t)
	t.Setenv("WEIR_TEST_STORE", "redis://"+store)
	weir := `{"store":"{env.WEIR_TEST_STORE}","limits":[{"name":"stored","rate":"3/h"},{"name":"flights","concurrency":5,"local":true},
		{"name":"by quota","rate":"4/h","quota":"{http.request.header.Quota}"}]}`
	c := start(t, weir)
	assert.Equal(t, 1, passed(c, 1))
	assert.Equal(t, 2, passed(c, 4))
	c.Stop(t)
	assert.Equal(t, 0, passed(start(t, weir), 3), "the store has not forgotten")

	compat := testcaddy.Start(t, "rate_limit", `{"store":"redis://`+store+`","on_loss":"closed","rate_limits":{
		"stored":{"key":"{http.request.header.X}","window":"1h","max_events":3},"none":{"match":[{"method":["PUT"]}],"window":"1h","max_events":0}}}`)
	assert.Equal(t, 3, passed(compat, 5, "X", "a"))
	assert.Equal(t, 3, passed(compat, 5, "X", "b"))
	put := testcaddy.From("192.0.2.1:1")
	put.Method = http.MethodPut
	assert.Equal(t, http.StatusTooManyRequests, compat.Do(put).Code)
}

// TestAStoreWithAPassword: the address of a store may contain the password as text or as a placeholder. The error about
// a wrong password does not contain the password.
func TestAStoreWithAPassword(t *testing.T) {
	address, _ := startRedis(t, "--requirepass", "sesame")
	t.Setenv("WEIR_TEST_PASSWORD", "sesame")
	for _, user := range []string{"", "default"} {
		c := start(t, `{"store":"redis://`+user+`:{env.WEIR_TEST_PASSWORD}@`+address+`","on_loss":"closed","limits":[{"name":"of `+user+`","rate":"3/h"}]}`)
		assert.Equal(t, 3, passed(c, 5))
	}
	_, err := testcaddy.Provision(t, "weir", `{"store":"redis://:swordfish@`+address+`","limits":[{"name":"a","rate":"3/h"}]}`)
	assert.ErrorContains(t, err, "WRONGPASS")
	assert.NotContains(t, err.Error(), "swordfish")
}

// TestZonesOfBothModulesInAStore: a limit and a zone of the same name and numbers count separately.
func TestZonesOfBothModulesInAStore(t *testing.T) {
	address, _ := startRedis(t)
	store := `"store":"redis://` + address + `",`
	weir := start(t, `{`+store+`"limits":[{"name":"login","key":["x"],"rate":"4/h","algorithm":"sliding-log"}]}`)
	compat := testcaddy.Start(t, "rate_limit", `{`+store+`"rate_limits":{"login":{"key":"x","window":"1h","max_events":4}}}`)
	assert.Equal(t, 4, passed(weir, 6))
	assert.Equal(t, 4, passed(compat, 6))
}

// TestHoldsOverAReload: a hold is settled correctly if the limit's numbers change before the request ends. If the cost
// is above the hold, the complete cost counts. If the cost is below the hold, the difference is given back only if the
// limit is in a store.
func TestHoldsOverAReload(t *testing.T) {
	address, _ := startRedis(t)
	for cost, want := range map[string][2]int{"9": {2, 2}, "0": {3, 4}} { // holds of five tokens, of a limit of 20
		for i, store := range []string{"", "store redis://" + address} {
			came, goOn := make(chan struct{}, 1), make(chan struct{})
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					came <- struct{}{}
					<-goOn
					w.Header().Set("X-Tokens", cost)
				}
			}))
			s := newServer(t)
			site := func(rate string) string {
				return "weir {\nlimit tokens" + cost + " {\nkey x\nrate " + rate + "\nalgorithm fixed-window\ncost 5\n" +
					"settle {http.response.header.X-Tokens}\n}\n" + store + "\n}\nreverse_proxy " + upstream.Listener.Addr().String()
			}
			require.NoError(t, s.load(site("10/h")))
			done := make(chan int, 1)
			go func() {
				status, _, _, _ := s.try("127.0.0.1", "/slow")
				done <- status
			}()
			arrived(t, came, done)
			require.NoError(t, s.load(site("20/h")))
			close(goOn)
			require.Equal(t, http.StatusOK, <-done)
			admitted := 0
			for range 6 {
				if status, _, _ := s.get("127.0.0.1", "/"); status == http.StatusOK {
					admitted++
				}
			}
			assert.Equal(t, want[i], admitted, "cost %s, %q", cost, store)
			require.NoError(t, caddy.Stop())
			upstream.Close()
		}
	}
}

// arrived waits until the upstream has the request, and fails the test on an earlier answer.
func arrived(t *testing.T, came <-chan struct{}, answered <-chan int) {
	t.Helper()
	select {
	case <-came:
	case status := <-answered:
		require.FailNow(t, "the request has not reached the upstream", "its answer has status %d", status)
	}
}

// TestSharesOfMachines: while the store is lost, a machine admits its share. The default share is the limit divided by
// the configured number of nodes.
func TestSharesOfMachines(t *testing.T) {
	address, redis := startRedis(t)
	shares := func(name, options string) *testcaddy.Config {
		return start(t, `{"store":"redis://`+address+`",`+options+`"limits":[{"name":"`+name+`","rate":"100/h"}]}`)
	}
	of4, of20, half := shares("of 4", ``), shares("of 20", `"nodes":20,`), shares("half", `"nodes":20,"share":"50%",`)
	redis.Kill()
	assert.Equal(t, 25, passed(of4, 60))
	assert.Equal(t, 5, passed(of20, 60))
	assert.Equal(t, 50, passed(half, 60))
}

// TestAStoreLogsWhereTheConfigurationInForceDoes: a store's connection logs to the active configuration's log, even if
// an earlier configuration made it.
func TestAStoreLogsWhereTheConfigurationInForceDoes(t *testing.T) {
	address, redis := startRedis(t)
	s := newServer(t)
	const site = "weir {\nlimit logged {\nrate 100/h\n}\nstore redis://%\n}\nrespond ok"
	require.NoError(t, s.load(strings.ReplaceAll(site, "%", address)))
	s.log += ".second"
	require.NoError(t, s.load(strings.ReplaceAll(site, "%", address)))
	redis.Kill()
	for {
		s.get("127.0.0.1", "/")
		log, err := os.ReadFile(s.log)
		require.NoError(t, err)
		if strings.Contains(string(log), "the store is lost") { // otherwise go test times out
			return
		}
	}
}

// TestLimitsThatAStoreCannotKeep: a limit that a store cannot keep is an error, unless it is local.
func TestLimitsThatAStoreCannotKeep(t *testing.T) {
	store, _ := startRedis(t)
	for limit, want := range map[string]string{
		`"concurrency":1,"overflow":"admit"`:      "a store has room for every key and no overflow (overflow: admit): write local",
		`"concurrency":4097`:                      "limit of 4097 tokens: want 1 to 4096",
		`"rate":"1/s","max_wait":1000000000`:      "requests cannot wait for tokens of a store",
		`"rate":"1/s","overflow":"refuse"`:        "a store has room for every key and no overflow (overflow: refuse): write local",
		`"rate":"1/s","algorithm":"batch-refill"`: "a store does not keep batches (batch-refill): write local",
	} {
		_, err := testcaddy.Provision(t, "weir", `{"store":"redis://`+store+`","limits":[{"name":"a",`+limit+`}]}`)
		assert.ErrorContains(t, err, want, limit)
		c, err := testcaddy.Provision(t, "weir", `{"store":"redis://`+store+`","limits":[{"name":"a","local":true,`+limit+`}]}`)
		if assert.NoError(t, err, limit) {
			c.GiveUp()
		}
	}
}

// TestHoldsOfAStoreThatIsRemoved: a reload removes or replaces the store while a request is in flight. The request must
// still settle its cost in the store that has its hold.
func TestHoldsOfAStoreThatIsRemoved(t *testing.T) {
	first, _ := startRedis(t)
	second, _ := startRedis(t)
	for cost, want := range map[string]int{"9": 2, "0": 4} { // each hold takes five tokens, of a limit of 20
		for _, then := range []string{"", "store redis://" + second} {
			came, proceed := make(chan struct{}, 1), make(chan struct{})
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					came <- struct{}{}
					<-proceed
					w.Header().Set("X-Tokens", cost)
				}
			}))
			s := newServer(t)
			name := "tokens" + cost + map[bool]string{true: "memory", false: "store"}[then == ""]
			site := func(store string) string {
				return "weir {\nlimit " + name + " {\nkey x\nrate 20/h\nalgorithm fixed-window\ncost 5\n" +
					"settle {http.response.header.X-Tokens}\n}\n" + store + "\n}\nreverse_proxy " + upstream.Listener.Addr().String()
			}
			admitted := func() (n int) {
				for range 6 {
					if status, _, _ := s.get("127.0.0.1", "/"); status == http.StatusOK {
						n++
					}
				}
				return n
			}
			require.NoError(t, s.load(site("store redis://"+first)))
			done := make(chan int, 1)
			go func() {
				status, _, _, _ := s.try("127.0.0.1", "/slow")
				done <- status
			}()
			arrived(t, came, done)
			require.NoError(t, s.load(site(then)))
			close(proceed)
			require.Equal(t, http.StatusOK, <-done)
			assert.Equal(t, 4, admitted(), "cost %s, then %q: nothing of it is counted elsewhere", cost, then)
			require.NoError(t, s.load(site("store redis://"+first)))
			assert.Equal(t, want, admitted(), "cost %s, then %q: the store has it", cost, then)
			require.NoError(t, caddy.Stop())
			upstream.Close()
		}
	}
}
