package exampletest

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

// ports contains the ports in the configurations of the examples, in this order: for clients, of weir, of weir's admin
// page, of weir behind other proxies, of the server behind weir, and for clients of Redis.
var ports = []string{":8000", ":8080", ":8081", ":8090", ":3000", ":6380"}

// Weir returns the path of weir. The script with-weir in the folder examples builds it.
func Weir(t *testing.T, examples string) string {
	t.Helper()
	program, rules := filepath.Join(t.TempDir(), "weir"), filepath.Join(t.TempDir(), "weir.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("admin: 127.0.0.1"+freePorts(t)[":8081"]+"\nredis: 127.0.0.1:0\n"), 0o600))
	script, err := filepath.Abs(filepath.Join(examples, "with-weir"))
	require.NoError(t, err)
	out, err := exec.Command(script, rules, "sh", "-c", `cp "$TMPDIR/weir" "$0"`, program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// Script starts a copy of an example's run.sh with free ports and the program weir until the test ends, and returns the
// URL for clients. The working directory must be the folder examples.
func Script(t *testing.T, example, weir string) (url string) {
	t.Helper()
	free := freePorts(t)
	cmd, said := copied(t, example, weir, free), new(bytes.Buffer)
	cmd.Stderr = said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // an error means that it has already ended
		<-ended
	})
	// A server opens its ports one after the other, so the test must wait for each port.
	deadline := time.Now().Add(time.Minute)
	for _, port := range listened(t, example) {
		address := "127.0.0.1" + free[port]
		for ; ; time.Sleep(time.Millisecond) {
			if conn, err := net.Dial("tcp", address); err == nil {
				require.NoError(t, conn.Close())
				break
			}
			select {
			case err := <-ended:
				ended <- err
				t.Fatal("run.sh ended: ", err, said.String())
			default:
				require.True(t, time.Now().Before(deadline), "run.sh does not listen on %s", address)
			}
		}
	}
	return "http://127.0.0.1" + free[":8000"]
}

// listened returns the ports to wait for: for clients and, if the example has one, of the server behind weir.
func listened(t *testing.T, example string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(example, "*"))
	require.NoError(t, err)
	text := ""
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && filepath.Ext(file) != ".md" {
			more, err := os.ReadFile(file)
			require.NoError(t, err)
			text += string(more)
		}
	}
	for _, port := range []string{":3000", ":8000"} {
		if port == ":8000" || strings.Contains(text, port) {
			found = append(found, port)
		}
	}
	return found
}

// Output runs the run.sh of an example, waits until the script ends, and returns what it printed.
func Output(t *testing.T, example, weir string) string {
	t.Helper()
	out, err := copied(t, example, weir, freePorts(t)).Output()
	require.NoError(t, err)
	return string(out)
}

// Need skips the test if a program is neither in the repository's own build nor on the machine. An installed program
// may have another version. So if there are further arguments (works), the program must also succeed with these
// arguments.
func Need(t *testing.T, program string, works ...string) {
	t.Helper()
	folder, err := filepath.Abs("../bin/" + program)
	require.NoError(t, err)
	if _, err := exec.LookPath(filepath.Join(folder, program)); err == nil {
		t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
		return
	}
	for _, path := range []string{program, "/usr/sbin/" + program} { // not in every PATH
		if found, err := exec.LookPath(path); err == nil {
			if len(works) == 0 { // without arguments, nginx would serve its own configuration
				return
			}
			if out, err := exec.Command(found, works...).CombinedOutput(); err != nil {
				t.Skipf("%s is not one that the example is for: %v: %s", found, err, out)
			}
			return
		}
	}
	t.Skipf("%s is not installed", program)
}

// freePorts returns a free port for each of the examples' ports.
func freePorts(t *testing.T) map[string]string {
	t.Helper()
	free := map[string]string{}
	for _, port := range ports {
		free[port] = fmt.Sprintf(":%d", freeport.Number(t))
	}
	return free
}

// copied returns the command that runs a copy of an example with other ports.
func copied(t *testing.T, example, weir string, free map[string]string) *exec.Cmd {
	t.Helper()
	var pairs []string
	for _, port := range ports {
		pairs = append(pairs, port, free[port])
	}
	replacer, to := strings.NewReplacer(pairs...), t.TempDir()
	for _, root := range []string{"with-weir", "decide.yaml", example} {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			target := filepath.Join(to, path)
			if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
				return err
			}
			return os.WriteFile(target, []byte(replacer.Replace(string(text))), info.Mode().Perm())
		}))
	}
	workspace, err := filepath.Abs("go.work")
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(to, example, "run.sh"))
	cmd.Env = append(os.Environ(), "WEIR="+weir, "GOWORK="+workspace) // run.sh finds Go programs through the workspace
	return cmd
}
