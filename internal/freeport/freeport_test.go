package freeport

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoPortIsGivenTwice: four processes hold 200 ports each, and no two are the same. Without reservations, 14 pairs
// would be equal on average.
func TestNoPortIsGivenTwice(t *testing.T) {
	const processes, each = 4, 200
	if os.Getenv("WEIR_TEST_PORTS") != "" {
		for range each {
			fmt.Println(Number(t))
		}
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // the ports are held until the parent has read all
		return
	}
	seen := map[string]bool{}
	for range processes {
		child := exec.Command(os.Args[0], "-test.run", "^TestNoPortIsGivenTwice$")
		child.Env = append(os.Environ(), "WEIR_TEST_PORTS=1")
		in, err := child.StdinPipe()
		require.NoError(t, err)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		defer func() { require.NoError(t, child.Wait()) }()
		defer in.Close()
		lines := bufio.NewScanner(out)
		for range each {
			require.True(t, lines.Scan())
			assert.False(t, seen[lines.Text()], lines.Text())
			seen[lines.Text()] = true
		}
	}
}

// TestAPortInUseIsNotFree: a port on which a server listens cannot be reserved. A port that is already reserved cannot
// be reserved either.
func TestAPortInUseIsNotFree(t *testing.T) {
	port, release, err := Port()
	require.NoError(t, err)
	_, err = reserve(port)
	require.Error(t, err, "it is reserved")
	l, err := net.Listen("tcp", address(port))
	require.NoError(t, err, "nothing listens")
	release()
	_, err = reserve(port)
	require.Error(t, err, "a server listens")
	require.NoError(t, l.Close())
	release, err = reserve(port)
	require.NoError(t, err)
	release()
}
