//go:build unix

package accesslog

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/document"
	"github.com/weir-go/weir/internal/freeport"
)

// These tests make real servers write logs, and check that the logs have the requests that were sent.

type sentRequest struct{ method, target, agent string }

var sentRequests = []sentRequest{
	{"GET", "/a?b=c", "curl/8"},
	{"POST", "/login", `say "hi" \ \x41 back`},
	{"GET", "/caf%C3%A9?q=%22%5C&x=1", "caf\u00e9"},
	{"OPTIONS", "/", "{a|b} #20"},
}

func TestLogsOfARealNginx(t *testing.T) {
	texts, err := document.Read("../../..")
	require.NoError(t, err)
	var documented string
	for _, e := range document.Examples(texts["docs/program.md"], "nginx") {
		if strings.HasPrefix(e.Code, "log_format weir ") {
			documented = e.Code
		}
	}
	require.NotEmpty(t, documented, "docs/program.md has the format")
	const common = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent`
	for _, c := range []struct {
		name, format, use string
		host, agent       bool
	}{
		{"combined", "", "combined", false, true},
		{"common", "log_format f '" + common + "';", "f", false, false},
		{"vhost_combined",
			"log_format f '$host:$server_port " + common + ` "$http_referer" "$http_user_agent"';`, "f", true, true},
		{"nginx_json", documented, "weir", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, address := t.TempDir(), freeport.Address(t)
			log := filepath.Join(dir, "access.log")
			temp := ""
			for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				temp += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
			}
			conf := fmt.Sprintf("daemon off;\nmaster_process off;\npid %s/pid;\nerror_log stderr notice;\nevents {}\n"+
				"http {\n%s%s\naccess_log %s %s;\nserver { listen %s; return 200 hello; }\n}\n",
				dir, temp, c.format, log, c.use, address)
			stop := startServer(t, dir, "nginx", address, conf, "-p", dir, "-c")
			send(t, address, log)
			stop()
			checkReal(t, log, c.name, c.host, c.agent)
		})
	}
}

func TestLogsOfARealHAProxy(t *testing.T) {
	for _, syslog := range []string{"raw", "rfc3164", "rfc5424"} {
		t.Run(syslog, func(t *testing.T) {
			dir, address := t.TempDir(), freeport.Address(t)
			// HAProxy gets one thread, so that the lines are in the order of the requests.
			conf := "global\n nbthread 1\ndefaults\n mode http\n timeout connect 1m\n timeout client 1m\n" +
				" timeout server 1m\n option httplog\n log stdout format " + syslog + " local0\nfrontend f\n bind " + address +
				"\n capture request header User-Agent len 64\n http-request return status 200\n"
			stop := startServer(t, dir, "haproxy", address, conf, "-db", "-f")
			send(t, address, filepath.Join(dir, "output"))
			stop()
			checkReal(t, filepath.Join(dir, "output"), "haproxy", false, false)
		})
	}
}

func TestLogsOfARealCaddy(t *testing.T) {
	dir, address := t.TempDir(), freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	log := filepath.Join(dir, "access.log")
	conf := "{\n admin off\n}\nhttp://:" + port + " {\n bind 127.0.0.1\n log {\n output file " + log +
		"\n }\n respond hello\n}\n"
	stop := startServer(t, dir, "caddy", address, conf, "run", "--adapter", "caddyfile", "--config")
	send(t, address, log)
	stop()
	checkReal(t, log, "caddy", true, true)
}

// startServer starts a program and returns a function that stops it. The name of the configuration file is the last
// argument of the program. The output goes to dir/output. Without the program, the test is skipped.
func startServer(t *testing.T, dir, name, address, conf string, args ...string) (stop func()) {
	t.Helper()
	path := ""
	// The command make build-caddy puts its programs into the first directory. The last directory is not in every PATH.
	for _, where := range []string{"../../../bin/caddy/" + name, name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(where); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skipf("%s is not installed: make test does that", name)
	}
	file := filepath.Join(dir, "conf")
	require.NoError(t, os.WriteFile(file, []byte(conf), 0o600))
	output, err := os.Create(filepath.Join(dir, "output"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = output.Close() })
	cmd := exec.Command(path, append(args, file)...)
	cmd.Stdout = output
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
		}
	}
	t.Cleanup(stop)
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return stop
		}
		select {
		case err := <-ended:
			ended <- err // for stop, which receives it
			t.Fatalf("%s ended: %v", name, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// send sends the requests and waits until the log has all of them. A server that is stopped between an answer and its
// entry would lose the entry.
func send(t *testing.T, address, log string) {
	t.Helper()
	for _, r := range sentRequests {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: %s\r\nX-Api-Key: k\r\n"+
			"Content-Length: 0\r\nConnection: close\r\n\r\n", r.method, r.target, r.agent)
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(answer), " 200 ", r)
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(text), sentRequests[len(sentRequests)-1].method)
	}, time.Minute, 10*time.Millisecond)
}

// checkReal checks that a log has the requests. The log may also have an entry, not HTTP, of the check whether the
// server was ready.
func checkReal(t *testing.T, path, format string, host, agent bool) {
	t.Helper()
	log, err := Open([]string{path}, "")
	require.NoError(t, err)
	defer log.Close()
	fields, err := log.Fields()
	require.NoError(t, err)
	assert.Equal(t, format, log.Format())
	assert.Equal(t, host, fields.Host)
	assert.Equal(t, agent, fields.Header("User-Agent"))
	assert.Equal(t, format == "caddy" || format == "nginx_json", fields.Header("X-Api-Key"))
	var got []sentRequest
	now := time.Now()
	for e, err := range entries(log) {
		if err != nil {
			require.NotContains(t, err.Error(), "HTTP/1.1", "only other lines are no entries")
			continue
		}
		if !e.IsHTTP() {
			continue
		}
		r := sentRequest{string(e.Method), string(e.Target), ""}
		for _, h := range e.Headers {
			if h.Name == "User-Agent" {
				r.agent = string(h.Value)
			}
		}
		if !agent {
			r.agent = sentRequests[len(got)].agent
		}
		got = append(got, r)
		assert.Equal(t, "127.0.0.1", string(e.Client))
		assert.Equal(t, "HTTP/1.1", string(e.Proto))
		assert.Equal(t, 200, e.Status)
		assert.Equal(t, host, len(e.Host) > 0)
		if host {
			assert.True(t, strings.HasPrefix(string(e.Host), "www.example.com"), "%s", e.Host)
		}
		if format != "haproxy" { // it logs local time without a zone
			assert.WithinDuration(t, now, e.Time, time.Hour)
		}
	}
	assert.Equal(t, sentRequests, got)
}
