package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
)

// An upgradable is a weir process. Its program file is a link, and a test can change where the link leads.
type upgradable struct {
	*started
	name string
	url  string
}

// install starts an upgradable. It gets a rule file and environment variables.
func install(t *testing.T, rules string, variables ...string) *upgradable {
	t.Helper()
	adoptOrphans(t)
	i := &upgradable{name: filepath.Join(t.TempDir(), "weir")}
	require.NoError(t, os.Symlink(build(t), i.name))
	cmd := exec.Command(i.name, "serve", rules)
	cmd.Env = append(os.Environ(), variables...)
	i.started = startCommand(t, cmd)
	i.url = i.until(`msg=listening url=(\S+) for=clients`)[0]
	return i
}

// replace makes the link lead to a shell script.
func (i *upgradable) replace(script string) {
	i.t.Helper()
	require.NoError(i.t, os.WriteFile(i.name+"~", []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	require.NoError(i.t, os.Rename(i.name+"~", i.name))
}

func (i *upgradable) signal(s syscall.Signal) { require.NoError(i.t, i.Process.Signal(s)) }

const five = "listen: 127.0.0.1:0\nrules: [{name: a, rate: 1/h, burst: 5}]\n"

// TestUpgradeThatFails: if a new program does not start, the previous process continues. The log says why.
func TestUpgradeThatFails(t *testing.T) {
	rules := file(t, "weir.yaml", five)
	i := install(t, rules)
	i.replace("exit 3")
	i.signal(syscall.SIGUSR2)
	i.until(`msg="upgrade failed: this process continues as before" err="process \d+ did not start: exit status 3"`)
	assert.Equal(t, 200, status(t, i.url))

	require.NoError(t, os.Remove(i.name))
	i.signal(syscall.SIGUSR2)
	i.until(`msg="upgrade failed: .* no such file`)

	require.NoError(t, os.Symlink(build(t), i.name))
	require.NoError(t, os.WriteFile(rules, []byte("rules: [{name: a, rat: 1/h}]"), 0o600))
	i.signal(syscall.SIGUSR2)
	i.until(`^\S+weir.yaml:1:19: unknown key "rat"`)
	i.until(`msg="upgrade failed: .* did not start: .*weir.yaml has mistakes`)
	require.NoError(t, os.WriteFile(rules, []byte("state: /none/of/these\n"+five), 0o600))
	i.signal(syscall.SIGUSR2)
	i.until(`msg="upgrade failed: .* did not start: .*there is no folder`)
	assert.Equal(t, 200, status(t, i.url))

	i.signal(syscall.SIGTERM)
	i.until(`msg=stopped`)
	assert.NoError(t, i.Wait())
}

// TestKilledSuccessor acts as a new program in an upgrade. It changes the limits and never serves.
func TestKilledSuccessor(t *testing.T) {
	rules := os.Getenv("WEIR_TEST_RULES")
	if rules == "" {
		t.Skip("a process of TestUpgradeThatIsKilled runs this")
	}
	f, err := rulefile.Load(rules)
	require.NoError(t, err)
	limiter, err := f.Rules[0].NewLimiter(f.Rules[0].StateOptions()...)
	require.NoError(t, err)
	defer limiter.Close()
	select {}
}

// TestUpgradeThatIsKilled: a new program has changed limits, and is killed before it serves. The previous limits are
// restored.
func TestUpgradeThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	rules := func(burst int) string {
		return file(t, "weir.yaml", fmt.Sprintf("listen: 127.0.0.1:0\nstate: %s\nrules: [{name: a, rate: 1/h, burst: %d, "+
			"max_keys: 100, tiers: {header: Plan, values: {free: {rate: 1/h, burst: %d}}}}]\n", dir, burst, burst+1))
	}
	old := rules(5)
	f, err := rulefile.Load(old)
	require.NoError(t, err)
	policies := func() string {
		table, err := engine.ReadShared(f.Rules[0].State)
		require.NoError(t, err)
		return fmt.Sprint(table.Policies)
	}
	i := install(t, old)
	before := policies()
	i.replace("WEIR_TEST_RULES=" + rules(100) + " exec " + os.Args[0] + " -test.run '^TestKilledSuccessor$'")
	i.signal(syscall.SIGUSR2)
	next := i.successor("upgrade")
	for deadline := time.Now().Add(time.Minute); policies() == before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the new program has not changed the limits")
	}
	next.signal(syscall.SIGKILL)
	i.until(`msg="upgrade failed: this process continues as before" err="process \d+ did not start: signal: killed"`)
	assert.True(t, next.isGone(), "the old program has waited for it")
	assert.Equal(t, before, policies())
	assert.Equal(t, 200, status(t, i.url))
}

// TestUpgradeUnderWay: while a new program starts, the previous process serves requests and refuses another upgrade. If
// it gets a SIGTERM, both processes end.
func TestUpgradeUnderWay(t *testing.T) {
	i := install(t, file(t, "weir.yaml", five))
	slow := filepath.Join(t.TempDir(), "slow")
	require.NoError(t, syscall.Mkfifo(slow, 0o600))
	i.replace("read line <" + slow + "; exec " + build(t) + ` "$@"`)
	i.signal(syscall.SIGUSR2)
	i.until(`msg="upgrade: another process starts"`)
	i.signal(syscall.SIGUSR2)
	i.until(`msg="upgrade refused: another one is in progress"`)
	assert.Equal(t, 200, status(t, i.url))
	require.NoError(t, os.WriteFile(slow, []byte("go\n"), 0)) // waits until the program reads
	second := i.successor("upgraded")
	require.NoError(t, i.Wait())
	assert.Equal(t, 200, status(t, i.url))

	second.signal(syscall.SIGUSR2)
	third := i.successor("upgrade")
	second.signal(syscall.SIGTERM)
	i.until(`msg=stopped`)
	assert.Zero(t, second.wait())
	if !third.isGone() { // the previous process need not wait for the third process
		third.wait() // it must end, by a signal or by itself; otherwise wait would not return
	}
}

// TestANewProgramThatDoesNotEnd: if the previous process ends before the new program serves, the new program is killed.
// Otherwise it would keep the sockets.
func TestANewProgramThatDoesNotEnd(t *testing.T) {
	i := install(t, file(t, "weir.yaml", five))
	ready := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	i.replace("trap '' TERM; echo >" + ready + "; exec sleep 60")
	i.signal(syscall.SIGUSR2)
	next := i.successor("upgrade")
	_, err := os.ReadFile(ready) // waits until the program writes
	require.NoError(t, err)
	i.signal(syscall.SIGTERM)
	require.NoError(t, i.Wait())
	if !next.isGone() { // the previous process need not wait for the new process
		assert.Equal(t, syscall.SIGKILL, next.wait().Signal())
	}
}

// TestSystemdIsTold: weir reports three events to systemd: that it is ready, that an upgrade has changed its main
// process, and that it ends.
func TestSystemdIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "weir") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer systemd.Close()
	require.NoError(t, systemd.SetReadDeadline(time.Now().Add(time.Minute)))
	told := func() string {
		message := make([]byte, 1<<10)
		n, err := systemd.Read(message)
		require.NoError(t, err)
		return string(message[:n])
	}
	i := install(t, file(t, "weir.yaml", five), "NOTIFY_SOCKET="+systemd.LocalAddr().String())
	assert.Equal(t, "READY=1", told())
	i.signal(syscall.SIGUSR2)
	next := i.successor("upgraded")
	assert.Equal(t, "MAINPID="+strconv.Itoa(next.pid), told())
	require.NoError(t, i.Wait())
	next.signal(syscall.SIGTERM)
	assert.Equal(t, "STOPPING=1", told())
	assert.Zero(t, next.wait())
}
