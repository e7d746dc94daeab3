//go:build unix

package redistest

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStart(t *testing.T) {
	s := Start(t)
	assert.Equal(t, "redis://"+s.Addr(), s.URL())
	assert.Equal(t, "PONG", s.Do("PING"))
	assert.Equal(t, "OK", s.Do("SET", "k", "v"))
	assert.Equal(t, "v", s.Do("GET", "k"))
	assert.Empty(t, s.Do("GET", "none"))
	assert.Equal(t, "1\nv", s.Do("EVAL", "return {1, redis.call('get', KEYS[1])}", "1", "k"))
	assert.Equal(t, "save\n", s.Do("CONFIG", "GET", "save"), "persistence is on")
	assert.Equal(t, "appendonly\nno", s.Do("CONFIG", "GET", "appendonly"))
	assert.Contains(t, s.Do("CONFIG", "GET", "dir"), s.dir)
}

func TestTheProcessEndsWithTheTest(t *testing.T) {
	program(t) // skip here; otherwise only the inner test would be skipped
	var address string
	t.Run("inner", func(t *testing.T) { address = Start(t).Addr() })
	require.NotEmpty(t, address)
	_, err := net.DialTimeout("tcp", address, time.Second)
	assert.Error(t, err)
}

func TestStopAndRestart(t *testing.T) {
	s := Start(t)
	address := s.Addr()
	s.Do("SET", "k", "v")
	s.Stop()
	s.Stop() // the second call does nothing
	_, err := net.DialTimeout("tcp", address, time.Second)
	require.Error(t, err)
	s.Restart()
	assert.Equal(t, address, s.Addr())
	assert.Equal(t, "PONG", s.Do("PING"))
	assert.Empty(t, s.Do("GET", "k"), "data outlived a restart")
	s.Restart()
	assert.Equal(t, "PONG", s.Do("PING"))
}

func TestPauseAndResume(t *testing.T) {
	s := Start(t)
	client := s.Client()
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := client.Do(ctx, client.B().Ping().Build()).Error()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	s.Resume()
	assert.Equal(t, "PONG", s.Do("PING"))
	s.Pause() // the end of the test kills the paused server
}

func TestAPortInUseIsNotOurs(t *testing.T) {
	other := Start(t)
	s := &Server{t: t, program: program(t), dir: t.TempDir(), port: other.port}
	assert.ErrorContains(t, s.launch(), "ended at once")
	assert.ErrorContains(t, other.checkProcess(os.Getpid()), "another process")
	assert.NoError(t, other.checkProcess(other.command.Process.Pid))
}

func TestReplica(t *testing.T) {
	master := Start(t)
	master.Do("SET", "k", "v")
	replica := StartReplica(t, master)
	assert.Equal(t, "v", replica.Do("GET", "k"))
	_, err := replica.ask("SET", "k", "w")
	assert.ErrorContains(t, err, "READONLY")
}

func TestCluster(t *testing.T) {
	c := StartCluster(t)
	assert.True(t, strings.HasPrefix(c.URL(), c.Nodes[0].URL()+"?addr="+c.Nodes[1].Addr()+"&addr="), c.URL())
	for i := range c.Nodes {
		assert.Equal(t, i, c.Owner((i*2+1)*slots/masters/2), "the middle slot of node %d", i)
	}

	slot := c.Slot("{k}")
	from := c.Owner(slot)
	to := (from + 1) % masters
	for i := range 250 {
		c.Nodes[from].Do("SET", "{k}"+strconv.Itoa(i), strconv.Itoa(i), "PX", "600000")
	}
	c.MoveSlot(slot, to)
	assert.Equal(t, to, c.Owner(slot))
	for i := range 250 {
		require.Equal(t, strconv.Itoa(i), c.Nodes[to].Do("GET", "{k}"+strconv.Itoa(i)))
	}
	for i, node := range c.Nodes {
		if i != to {
			_, err := node.ask("GET", "{k}0")
			assert.ErrorContains(t, err, "MOVED "+strconv.Itoa(slot)+" "+c.Nodes[to].Addr(), "node %d", i)
		}
	}
}

type recorder struct {
	testing.TB
	failed, skipped string
}

var errEnded = errors.New("ended")

func (r *recorder) Helper()           {}
func (r *recorder) Fatal(args ...any) { r.failed = args[0].(string); panic(errEnded) }
func (r *recorder) Skip(args ...any)  { r.skipped = args[0].(string); panic(errEnded) }

func TestMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		r := &recorder{TB: t}
		assert.PanicsWithError(t, errEnded.Error(), func() { program(r) })
		if ci == "" {
			assert.Contains(t, r.skipped, "apt-get install redis-server")
		} else {
			assert.Contains(t, r.failed, "no redis-server or valkey-server")
			assert.Empty(t, r.skipped)
		}
	}
}
