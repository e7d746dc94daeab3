//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
	"github.com/weir-go/weir/internal/freeport"
)

// TestRecipes does what each page of docs/recipes says. Each page has a folder and ports of its own. What a page shows
// must be exactly what its commands print.
func TestRecipes(t *testing.T) {
	pages, err := filepath.Glob("../../docs/recipes/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			steps := document.Blocks(string(text))
			if filepath.Base(page) == "README.md" {
				require.Empty(t, steps)
				return
			}
			require.NotEmpty(t, steps)
			k := kitchen{t: t, dir: t.TempDir(), ports: map[string]string{}, servers: map[string]*started{}}
			k.prepare()
			shown := 0
			for _, step := range steps {
				shown += k.do(step)
			}
			assert.Positive(t, shown, "the page shows nothing that a command prints")
		})
	}
}

// A kitchen is where the test runs the steps of a recipe.
type kitchen struct {
	t       *testing.T
	dir     string
	ports   map[string]string // ports of this machine, by the ports on the page
	servers map[string]*started
}

// prepare makes weir and the sample log available under the names that the pages use.
func (k *kitchen) prepare() {
	require.NoError(k.t, os.Symlink(build(k.t), filepath.Join(k.dir, "weir")))
	root, err := filepath.Abs("../..")
	require.NoError(k.t, err)
	require.NoError(k.t, os.Symlink(filepath.Join(root, "cmd"), filepath.Join(k.dir, "cmd")))
}

var (
	named     = regexp.MustCompile(`^# ([a-z.]+)\n`)
	port      = regexp.MustCompile(`\b(8000|808[0-9]|6379)\b`)
	listens   = regexp.MustCompile(`(?m)(?:listen:? 127\.0\.0\.1:|--port )(\d+)`)
	blanks    = regexp.MustCompile(`(?m)[ \r]+$`)
	longLived = regexp.MustCompile(`^(weir serve|nginx|redis-server) .*\n$`)
)

// The method do executes one step of a page. It returns how many outputs it has compared.
func (k *kitchen) do(b document.Block) int {
	code := strings.ReplaceAll(port.ReplaceAllStringFunc(b.Code, k.free), "/tmp/weir", filepath.Join(k.dir, "state"))
	switch {
	case b.Language == "sh" && longLived.MatchString(code):
		k.serve(strings.TrimSpace(code))
	case b.Language == "sh":
		out, err := k.shell(code).Output()
		require.NoError(k.t, err, code)
		if b.Output != "" {
			printed := strings.TrimRight(blanks.ReplaceAllString(string(out), ""), "\n")
			assert.Equal(k.t, port.ReplaceAllStringFunc(b.Output, k.free), printed, code)
			return 1
		}
	default:
		name := named.FindStringSubmatch(code)
		require.NotNil(k.t, name, "the first line is to be the name of the file:\n%s", code)
		code = strings.Replace(code, "store: {", "store: {timeout: 5s, ", 1) // a slow answer does not count as a loss
		require.NoError(k.t, os.WriteFile(filepath.Join(k.dir, name[1]), []byte(code), 0o600))
	}
	return 0
}

func (k *kitchen) shell(code string) *exec.Cmd {
	cmd := exec.Command("bash", "-ec", code)
	cmd.Dir, cmd.Env = k.dir, append(os.Environ(), "PATH="+k.dir+":"+os.Getenv("PATH")+":/usr/sbin")
	return cmd
}

// serve starts a server and waits until it listens. If the same command has started a server before, serve ends that
// server first.
func (k *kitchen) serve(command string) {
	words := strings.Fields(command)
	if _, err := k.shell("command -v " + words[0]).Output(); err != nil {
		k.t.Skipf("no %s on this machine: the recipe was not run", words[0])
	}
	// SIGTERM also ends the worker processes of nginx. They would survive a SIGKILL of the main process.
	end := func(s *started) {
		_ = s.Process.Signal(syscall.SIGTERM)
		_ = s.Wait()
	}
	if s := k.servers[command]; s != nil {
		end(s)
	}
	server := startCommand(k.t, k.shell("exec "+command))
	k.t.Cleanup(func() { end(server) })
	k.servers[command] = server
	// Without a file, the port is in the command.
	file, _ := os.ReadFile(filepath.Join(k.dir, words[len(words)-1]))
	at := listens.FindStringSubmatch(command + "\n" + string(file))
	require.NotNil(k.t, at, command)
	require.Eventually(k.t, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+at[1])
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, time.Minute, 20*time.Millisecond, "%s does not listen on %s", command, at[1])
}

// The method free returns a free port to use instead of a port on the page. For the same port, it always returns the
// same free port.
func (k *kitchen) free(of string) string {
	if k.ports[of] == "" {
		k.ports[of] = fmt.Sprint(freeport.Number(k.t))
	}
	return k.ports[of]
}
