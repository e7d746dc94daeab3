//go:build unix

package main

import (
	"context"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
	"github.com/weir-go/weir/internal/freeport"
)

// The tests below use the program with real Redis clients. For go-redis, the test is in examples/redisdoor.

// door starts the program with a listener for Redis clients, and returns its address.
func door(t *testing.T) (s *started, host, port string) {
	t.Helper()
	s = startProgram(t, "serve", file(t, "door.yaml", "redis: {address: 127.0.0.1:0, max_keys: 200000}"))
	host, port, err := net.SplitHostPort(s.until(`msg=listening url=redis://(\S+)/ for=redis`)[0])
	require.NoError(t, err)
	return s, host, port
}

func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed: make programs does that", program)
	}
	return path
}

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestRedisCLI(t *testing.T) {
	cli := installed(t, "redis-cli")
	s, _, port := door(t)
	ask := func(args ...string) string {
		return output(t, cli, append([]string{"--no-raw", "-p", port}, args...)...)
	}
	assert.Equal(t, "PONG\n", ask("PING"))
	assert.Equal(t, "1) (integer) 0\n2) (integer) 1\n3) (integer) 0\n4) (integer) -1\n5) (integer) 3600\n", ask("CL.THROTTLE", "a key", "0", "1", "3600"))
	assert.Regexp(t, `^1\) \(integer\) 1\n2\) \(integer\) 1\n3\) \(integer\) 0\n4\) \(integer\) 3[56]\d\d\n5\) \(integer\) 3[56]\d\d\n$`,
		ask("CL.THROTTLE", "a key", "0", "1", "3600"))
	assert.Regexp(t, `^1# "allowed" => \(true\)\n2# "limit" => \(integer\) 5\n3# "remaining" => \(integer\) 4\n`, ask("-3", "WEIR.TAKE", "b", "LIMIT", "5/h"))
	assert.Regexp(t, `^1\) \(integer\) 0\n2\) \(integer\) 2\n3\) \(integer\) 1\n4\) \(double\) -1\n5\) \(double\) 1800.5\n$`,
		ask("-3", "GCRA", "c", "1", "2", "3601"))
	assert.Contains(t, ask("GET", "x"), "(error) ERR unknown command 'GET'")
	assert.Contains(t, ask("INFO"), "decisions_allowed:3")
	assert.Contains(t, ask("COMMAND", "DOCS"), "CL.THROTTLE key max_burst count period [quantity]")
	// redis-cli sends a pipeline.
	pipe := exec.Command(cli, "-p", port, "--pipe")
	pipe.Stdin = strings.NewReader(strings.Repeat("CL.THROTTLE piped 999 1 600\r\n", 1000))
	out, err := pipe.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "errors: 0, replies: 1000")

	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	s.until("msg=stopped")
	assert.NoError(t, s.Wait())
}

func TestRedisBenchmark(t *testing.T) {
	benchmark := installed(t, "redis-benchmark")
	_, _, port := door(t)
	for _, pipeline := range []string{"1", "64"} {
		out := output(t, benchmark, "-p", port, "-n", "5000", "-c", "20", "-P", pipeline, "-r", "1000", "-q", "-e",
			"CL.THROTTLE", "key:__rand_int__", "15", "30", "60")
		assert.Contains(t, out, "requests per second")
		assert.NotContains(t, out, "ERR")
	}
	assert.NotContains(t, output(t, benchmark, "-p", port, "-n", "1000", "-q", "-e", "-t", "ping_inline,ping_mbulk"), "ERR")
}

func TestRueidis(t *testing.T) {
	_, host, port := door(t)
	// By default, this client asks for RESP3 and for caching in the client.
	for name, option := range map[string]rueidis.ClientOption{"RESP3": {}, "RESP2": {AlwaysRESP2: true, DisableCache: true}} {
		option.InitAddress = []string{net.JoinHostPort(host, port)}
		client, err := rueidis.NewClient(option)
		require.NoError(t, err, name)
		defer client.Close()
		ctx := context.Background()
		commands := make(rueidis.Commands, 200)
		for i := range commands {
			commands[i] = client.B().Arbitrary("CL.THROTTLE").Keys(name).Args("99", "1", "3600").Build()
		}
		allowed := 0
		for _, result := range client.DoMulti(ctx, commands...) {
			answer, err := result.AsIntSlice()
			require.NoError(t, err)
			require.Len(t, answer, 5)
			allowed += 1 - int(answer[0])
		}
		assert.Equal(t, 100, allowed)
		m, err := client.Do(ctx, client.B().Arbitrary("WEIR.PEEK").Keys(name).Args("LIMIT", "1/h", "BURST", "100").Build()).AsMap()
		require.NoError(t, err)
		remaining := m["remaining"]
		left, err := remaining.AsInt64()
		require.NoError(t, err)
		assert.Zero(t, left)
	}
}

// TestRedisPy uses the Redis client for Python as the document shows.
func TestRedisPy(t *testing.T) {
	python := installed(t, "python3")
	if exec.Command(python, "-c", "import redis").Run() != nil {
		t.Skip("python3 has no redis: make programs installs python3-redis")
	}
	_, _, port := door(t)
	texts, err := document.Read("../..")
	require.NoError(t, err)
	examples := document.Examples(texts["docs/redis-door.md"], "python")
	require.Len(t, examples, 1)
	require.Contains(t, examples[0].Code, "port=6380")
	program := strings.ReplaceAll(examples[0].Code, "6380", port) + `
assert [limited, limit, remaining, retry_after, reset_after] == [0, 16, 15, -1, 2]
pipe = door.pipeline(transaction=False)
for _ in range(300):
    pipe.execute_command("CL.THROTTLE", b"\x00\xff", 99, 1, 3600)
assert sum(1 - answer[0] for answer in pipe.execute()) == 100
assert door.exists(b"\x00\xff") == 1 and 0 < door.ttl(b"\x00\xff") <= 360000
assert door.delete(b"\x00\xff") == 1
assert door.exists(b"\x00\xff") == 0 and door.ttl(b"\x00\xff") == -2
pipe = door.pipeline()  # a transaction, unless one says otherwise
for _ in range(300):
    pipe.execute_command("CL.THROTTLE", "tx", 99, 1, 3600)
pipe.delete("tx")
answers = pipe.execute()
assert sum(1 - answer[0] for answer in answers[:300]) == 100 and answers[300] == 1
pipe.execute_command("CL.THROTTLE", "tx", 99, 1, 3600).execute_command("CL.THROTTLE", "tx")
try:
    pipe.execute()
    raise SystemExit("half a transaction is done")
except redis.ResponseError as e:
    assert "wrong number of arguments" in str(e), e
assert door.exists("tx") == 0
assert door.ping() and door.info()["redis_mode"] == "standalone"
try:
    door.get("x")
    raise SystemExit("GET is answered")
except redis.ResponseError as e:
    assert "unknown command" in str(e), e
print("fine")
`
	assert.Equal(t, "fine\n", output(t, python, "-c", program))
}

// TestTheDoorAsTheDocumentBegins runs the first commands of the document on another port.
func TestTheDoorAsTheDocumentBegins(t *testing.T) {
	cli := installed(t, "redis-cli")
	texts, err := document.Read("../..")
	require.NoError(t, err)
	text := texts["docs/redis-door.md"]
	first := document.Examples(text, "sh")[0]
	require.Equal(t, 5, len(strings.Split(strings.TrimSpace(first.Code), "\n")))
	require.Contains(t, first.Code, "make build-weir\n")
	script := strings.NewReplacer("make build-weir\n", "", "bin/weir", build(t), "6380", strconv.Itoa(freeport.Number(t)), "redis-cli", cli+" --no-raw").Replace(first.Code)
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, first.Output, strings.TrimSpace(string(out)))
	assert.Regexp(t, regexp.MustCompile("(?m)^redis: 127.0.0.1:6380$"), strings.ReplaceAll(first.Code, "'", "\n"))
}
