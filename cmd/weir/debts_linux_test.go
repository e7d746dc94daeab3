package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

// An outage is a weir process with a state folder. Its store is lost and comes back. Two machines share a limit of 40,
// so this machine admits 20 requests without the store.
type outage struct {
	t      *testing.T
	port   string
	folder string
	path   string // path of the rule file
	weir   *started
	url    string
	store  *exec.Cmd
}

func newOutage(t *testing.T, more string) *outage {
	installed(t, "redis-server")
	o := &outage{t: t, port: strconv.Itoa(freeport.Number(t)), folder: t.TempDir()}
	o.path = file(t, "weir.yaml", fmt.Sprintf(`listen: 127.0.0.1:0
state: %s
store: {url: "redis://127.0.0.1:%s", nodes: 2, timeout: 5s}
%s
rules: [{name: api, key: global, rate: 40/h, burst: 40}]
`, o.folder, o.port, more))
	o.startStore()
	t.Cleanup(o.killStore)
	o.start()
	return o
}

func (o *outage) startStore() { o.store = runRedis(o.t, o.port) }

func (o *outage) killStore() {
	_ = o.store.Process.Kill()
	_ = o.store.Wait()
}

func (o *outage) start() {
	o.weir = startProgram(o.t, "serve", o.path)
	o.url = o.weir.until(`msg=listening url=(\S+) for=clients`)[0]
}

// The method end sends a signal that ends the process. It returns the rest of the process's log.
func (o *outage) end(by syscall.Signal) string {
	require.NoError(o.t, o.weir.Process.Signal(by))
	rest, err := io.ReadAll(o.weir.stderr)
	require.NoError(o.t, err)
	if err := o.weir.Wait(); by == syscall.SIGTERM {
		require.NoError(o.t, err, "%s", rest)
	}
	return string(rest)
}

// ask returns how many of n requests were admitted.
func (o *outage) ask(n int) (admitted int) {
	for range n {
		answer, err := http.Get(o.url)
		require.NoError(o.t, err)
		require.NoError(o.t, answer.Body.Close())
		if answer.StatusCode == http.StatusOK {
			admitted++
		} else {
			require.Equal(o.t, http.StatusTooManyRequests, answer.StatusCode)
		}
	}
	return admitted
}

func (o *outage) files() []string {
	all, err := filepath.Glob(o.folder + "/api-*.debts")
	require.NoError(o.t, err)
	return all
}

// awaitCharge waits until the store has a key of the limit. No requests are sent during this time, so only a charge can
// make the key.
func (o *outage) awaitCharge() {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:" + o.port}, DisableCache: true})
	require.NoError(o.t, err)
	defer c.Close()
	require.Eventually(o.t, func() bool {
		keys, err := c.Do(o.t.Context(), c.B().Keys().Pattern("weir:*:bucket:api:*").Build()).AsStrSlice()
		return err == nil && len(keys) == 1
	}, time.Minute, 5*time.Millisecond)
}

// The method lose stops the store. It then sends requests until the machine has admitted its share.
func (o *outage) lose() {
	require.Equal(o.t, 1, o.ask(1))
	o.killStore() // the store also loses its data
	require.Equal(o.t, 20, o.ask(25), "the share of this machine")
}

// TestWhatIsOwedOutlivesTheProcess: weir admits tokens while the store is lost, and is then killed or stopped. The
// tokens are still charged to the store. The next process gets no second share.
func TestWhatIsOwedOutlivesTheProcess(t *testing.T) {
	for name, by := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			o := newOutage(t, "server: {shutdown_timeout: 100ms}")
			o.lose()
			if log := o.end(by); by == syscall.SIGTERM {
				assert.Contains(t, log, "stopping: admitted requests are not charged to the store; the debt is kept in the state folder")
			}
			require.Len(t, o.files(), 1)
			o.start()
			assert.Zero(t, o.ask(3), "the share was spent")
			o.startStore()
			o.awaitCharge()
			assert.Equal(t, 20, o.ask(25), "of 40 are left")
			o.end(syscall.SIGTERM)
			assert.Empty(t, o.files(), "nothing is owed")
			o.start()
			assert.Zero(t, o.ask(1))
			o.end(syscall.SIGTERM)
		})
	}
}

// TestStoppingChargesTheStore: when weir stops while its store is lost, it waits for the store for at most
// shutdown_timeout.
func TestStoppingChargesTheStore(t *testing.T) {
	o := newOutage(t, "server: {shutdown_timeout: 50s}")
	o.lose()
	ended := make(chan string, 1)
	go func() { ended <- o.end(syscall.SIGTERM) }()
	o.startStore()
	o.awaitCharge()
	assert.NotContains(t, <-ended, "not charged")
	assert.Empty(t, o.files())
	o.start()
	assert.Equal(t, 20, o.ask(25))
}

// TestFilesOfWhatIsOwed: when weir starts, it makes the files for debts. The log names files that belong to no rule. If
// the folder is missing, weir reports an error.
func TestFilesOfWhatIsOwed(t *testing.T) {
	o := newOutage(t, "")
	require.Len(t, o.files(), 1)
	o.end(syscall.SIGTERM)
	other := o.folder + "/other-0123456789abcdef.AAAAAAAAAAAAAAAAAAAAAAAAAA.debts"
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	o.weir = startProgram(t, "serve", o.path)
	assert.Equal(t, other, o.weir.until(`msg="state: these files belong to no rule; weir does not remove them" files=(\S+)`)[0])
	o.end(syscall.SIGTERM)
	require.NoError(t, os.RemoveAll(o.folder))
	got := run(t, build(t), "", "serve", o.path)
	assert.Equal(t, 1, got.status)
	assert.Contains(t, got.stderr, "there is no folder "+o.folder)
}
