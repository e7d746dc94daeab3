package program_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/caddylimit/internal/testprogram"
	"github.com/weir-go/weir/internal/freeport"
)

// A caddy is a running process of the program of this package.
type caddy struct {
	t           *testing.T
	program     string
	site, admin string // addresses
}

// build builds the program without cgo, to share compiled packages with make.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds all of Caddy, and nothing of it is under the race detector")
	}
	program := filepath.Join(t.TempDir(), "caddy")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.Command("go", "build", "-o", program, "../../cmd/caddy")
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

func run(t *testing.T, directives string) *caddy {
	t.Helper()
	c := &caddy{t: t, program: build(t), site: freeport.Address(t), admin: freeport.Address(t)}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	require.NoError(t, os.WriteFile(file, []byte(c.config(directives)), 0o600))
	process := testprogram.Run(t, c.program, "run", "--config", file, "--adapter", "caddyfile")
	for { // until it listens; if it never does, the time limit of go test ends the loop
		answer, err := http.Get("http://" + c.site + "/up")
		if err == nil {
			answer.Body.Close()
			return c
		}
		select {
		case <-process.Exited:
			t.Fatal(process.Output.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c *caddy) config(directives string) string {
	return fmt.Sprintf("{\nadmin %s\nauto_https off\npersist_config off\n}\nhttp://%s {\n%s\n}\n", c.admin, c.site, directives)
}

func (c *caddy) load(directives string) (int, string) {
	answer, err := http.Post("http://"+c.admin+"/load", "text/caddyfile", bytes.NewReader([]byte(c.config(directives))))
	if !assert.NoError(c.t, err) {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	assert.NoError(c.t, err)
	return answer.StatusCode, string(text)
}

func (c *caddy) admitted(path string) bool {
	answer, err := http.Get("http://" + c.site + path)
	if err != nil {
		return false // a load has closed the connection
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode == http.StatusOK
}

// sameCounts checks that a zone's histogram and counter agree after all loads.
func (c *caddy) sameCounts(zone string) {
	answer, err := http.Get("http://" + c.admin + "/metrics")
	require.NoError(c.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	of := func(name string) string {
		found := regexp.MustCompile(`(?m)^caddy_rate_limit_` + name + `{zone="` + zone + `"} (\S+)$`).FindSubmatch(text)
		require.NotNil(c.t, found, name)
		return string(found[1])
	}
	requests := of("requests_total")
	assert.NotEqual(c.t, "0", requests)
	assert.Equal(c.t, requests, of("process_time_seconds_count"))
}

// TestReloadedUnderLoad: with both directives, no client of a real Caddy gets a fresh bucket by a reload, whether the
// numbers stay, change, or need another limiter.
func TestReloadedUnderLoad(t *testing.T) {
	const site = `
		handle /up {
			respond up
		}
		handle /old {
			rate_limit {
				zone clients {
					key {remote_host}
					window 1h
					events %d
				}
			}
			respond ok
		}
		handle /new {
			weir {
				limit clients {
					rate %d/h
				}
			}
			respond ok
		}`
	c := run(t, fmt.Sprintf(site, 100, 100))
	const clients = 3
	var old, new atomic.Int64
	asked, stop, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	for range clients {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				if c.admitted("/old") {
					old.Add(1)
				}
				if c.admitted("/new") {
					new.Add(1)
				}
				select {
				case <-stop:
					return
				case asked <- struct{}{}:
				}
			}
		}()
	}
	most := int64(100) // the largest number of requests that the zone may have admitted
	for i, events := range []int64{100, 90, 100, 120, 300, 5000, 100, 4000, 100, 100} {
		for range 5 {
			<-asked
		}
		assert.LessOrEqual(t, old.Load(), most, "before load %d", i)
		most = max(most, events) // the new limit may apply before the load ends
		loaded := make(chan struct{})
		go func() { // requests continue meanwhile
			for {
				select {
				case <-loaded:
					return
				case <-asked:
				}
			}
		}()
		// The header makes each configuration different from the previous one.
		status, text := c.load(fmt.Sprintf(site, events, 100) + fmt.Sprintf("\nheader X-Load %d", i))
		close(loaded)
		assert.Equal(t, http.StatusOK, status, text)
		most = max(events, min(most, old.Load()+clients)) // admitted so far, and one more of each client
	}
	for range 200 {
		<-asked
	}
	close(stop)
	for range clients {
		<-done
	}
	// Few tokens come back during the test. Each load may lose one answer of each client.
	assert.LessOrEqual(t, old.Load(), most)
	assert.GreaterOrEqual(t, old.Load(), int64(60))
	assert.LessOrEqual(t, new.Load(), int64(110))
	assert.GreaterOrEqual(t, new.Load(), int64(60))

	c.sameCounts("clients")

	status, text := c.load("weir {\nlimit clients {\nrate 5\n}\n}")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, text, `limit 1 of 1, \"clients\"`)
	assert.Contains(t, text, "want tokens/period")
	assert.False(t, c.admitted("/old"), "the configuration before goes on")

	// The commands of docs/caddy.md run in this process, because building the program takes long.
	status, text = c.load(documented(t))
	require.Equal(t, http.StatusOK, status, text)
	assert.Equal(t, []int{429, 429}, c.answers(2), "the limit of that name has counted already")
	status, text = c.load(strings.ReplaceAll(documented(t), "clients", "others"))
	require.Equal(t, http.StatusOK, status, text)
	assert.Equal(t, []int{200, 200, 200, 200, 200, 429, 429}, c.answers(7))

	out, err := exec.Command(c.program, "list-modules").CombinedOutput()
	require.NoError(t, err)
	for _, module := range []string{"http.handlers.weir\n", "http.handlers.rate_limit\n", "http.handlers.reverse_proxy\n"} {
		assert.Contains(t, string(out), module)
	}
}
