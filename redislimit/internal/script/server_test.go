package script

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func start(t testing.TB) rueidis.Client {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: apt-get install redis-server, or make test")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, listener.Close())
	server := exec.Command(path, "--port", port, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir", t.TempDir())
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, server.Process.Kill())
		_ = server.Wait() // always an error, because the server was killed
	})
	var client rueidis.Client
	require.Eventually(t, func() bool {
		client, err = connect("127.0.0.1:" + port)
		return err == nil
	}, 10*time.Second, 10*time.Millisecond, "no answer from redis-server")
	t.Cleanup(client.Close)
	require.NoError(t, client.Do(context.Background(), client.B().Ping().Build()).Error())
	return client
}

func connect(address string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true, DisableRetry: true,
	})
}

func one(t testing.TB, p *Limit, c rueidis.Client, key string, a Ask) Answer {
	t.Helper()
	answers := make([]Answer, 1)
	require.NoError(t, p.Run(context.Background(), c, []string{key}, []Ask{a}, answers))
	return answers[0]
}

func strict(n uint64) Ask { return Ask{Need: n, Want: n} }
