package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/freeport"
)

// snippet returns a configuration of another program from docs/operations.md. In this configuration, weir has the given
// port.
func snippet(t *testing.T, language, port string, replace ...string) string {
	t.Helper()
	conf := example(t, "operations.md", language, "127.0.0.1:"+port)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, conf, replace[i])
	}
	return strings.NewReplacer(replace...).Replace(conf)
}

// example returns the first text of a document that is in the given language and contains the given word.
func example(t *testing.T, document, language, with string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs", document))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile("(?s)```"+language+"[^\n]*\n(.*?)```").FindAllSubmatch(text, -1) {
		if strings.Contains(string(found[1]), with) {
			return string(found[1])
		}
	}
	t.Fatalf("docs/%s has no %s with %s", document, language, with)
	return ""
}

func program(t *testing.T, name string) string {
	t.Helper()
	// make build-caddy puts its programs into the directory of the first path. The directory of the last path is not in
	// every PATH.
	for _, path := range []string{"../../../bin/caddy/" + name, name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skipf("%s is not installed: make test does that", name)
	return ""
}

// Each function below starts a program with a configuration from the document, and returns the program's address. The
// program asks weir about each request, and passes it to the given upstream. If upstream is "", it passes requests to
// weir.

func startNginx(t *testing.T, weir, upstream string) string {
	t.Helper()
	dir, address := t.TempDir(), freeport.Address(t)
	server := ""
	if upstream == "" {
		server = snippet(t, "nginx", "8080", "127.0.0.1:8000", address, "127.0.0.1:8080", weir)
	} else {
		server = snippet(t, "nginx", "8090", "127.0.0.1:8000", address, "127.0.0.1:8090", weir,
			"127.0.0.1:3000", upstream)
	}
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("\t%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	conf := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, "daemon off;\nmaster_process off;\npid %s;\n"+
		"error_log stderr notice;\nevents {}\nhttp {\n\taccess_log off;\n%s%s}\n",
		filepath.Join(dir, "pid"), temp, server), 0o600))
	startProgram(t, address, exec.Command(program(t, "nginx"), "-p", dir, "-c", conf))
	return address
}

func startHAProxy(t *testing.T, weir, _ string) string {
	t.Helper()
	address, conf := freeport.Address(t), filepath.Join(t.TempDir(), "haproxy.cfg")
	require.NoError(t, os.WriteFile(conf, []byte("defaults\n    timeout connect 1m\n    timeout client 1m\n"+
		"    timeout server 1m\n"+snippet(t, "haproxy", "8080", "127.0.0.1:8000", address, "127.0.0.1:8080", weir)), 0o600))
	startProgram(t, address, exec.Command(program(t, "haproxy"), "-db", "-f", conf))
	return address
}

func startCaddy(t *testing.T, weir, upstream string) string {
	t.Helper()
	dir, address := t.TempDir(), freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	conf := ""
	if upstream == "" {
		conf = snippet(t, "caddy", "8080", ":8000", ":"+port, "127.0.0.1:8080", weir)
	} else {
		conf = snippet(t, "caddy", "8090", ":8000", ":"+port, "127.0.0.1:8090", weir, "127.0.0.1:3000", upstream)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Caddyfile"), []byte("{\n    admin off\n}\n"+conf), 0o600))
	caddy, file := program(t, "caddy"), filepath.Join(dir, "Caddyfile")
	if !strings.HasPrefix(caddy, "../") { // an installed Caddy may be older than the directives of the document
		if out, err := exec.Command(caddy, "adapt", "--adapter", "caddyfile", "--config", file).CombinedOutput(); err != nil {
			t.Skipf("%s does not read the document's configuration: %v: %s", caddy, err, out)
		}
	}
	cmd := exec.Command(caddy, "run", "--adapter", "caddyfile", "--config", file)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	startProgram(t, address, cmd)
	return address
}

// TestNoWayRoundBesideOrBehindAnotherProxy: the bucket of a client does not depend on what the client claims about its
// request, its host and its address. For example, a client can write a host into the request line. A proxy prefers this
// host to the field Host.
func TestNoWayRoundBesideOrBehindAnotherProxy(t *testing.T) {
	for _, c := range []struct {
		name   string
		start  func(t *testing.T, weir, upstream string) string
		beside bool
	}{
		{"beside nginx", startNginx, true}, {"behind nginx", startNginx, false},
		{"beside Caddy", startCaddy, true}, {"behind Caddy", startCaddy, false},
		{"behind HAProxy", startHAProxy, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logins atomic.Int64
			upstream := strings.TrimPrefix(newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == "POST" && r.URL.Path == "/login" {
					logins.Add(1)
				}
			}), "http://")
			rules := "trusted_proxies: 127.0.0.1\nrules: [{name: logins, rate: 1/h, burst: 1, " +
				"match: {path: /login, method: POST, host: api.example.com}}, " +
				"{name: keys, rate: 1/h, burst: 1000, key: header:X-Key}]\n"
			address := ""
			if c.beside {
				decide := freeport.Address(t)
				start(t, "decide: "+decide+"\n"+rules)
				address = c.start(t, decide, upstream)
			} else {
				s := start(t, "upstream: {url: \"http://"+upstream+"\", keep_host: true}\n"+rules)
				address = c.start(t, s.address(), "")
			}
			do := func(target, header string) int {
				conn, err := net.Dial("tcp", address)
				require.NoError(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, "POST "+target+" HTTP/1.1\r\nContent-Length: 0\r\n"+header+"\r\n")
				require.NoError(t, err)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				return resp.StatusCode
			}
			const host = "Host: api.example.com\r\n"
			require.Equal(t, 200, do("/login", host))
			require.Equal(t, 429, do("/login", host))
			require.EqualValues(t, 1, logins.Load())
			for _, attack := range [][2]string{
				{"http://api.example.com/login", "Host: other\r\n"},
				{"http://API.example.com./login", "Host: other\r\n"},
				{"/login", "Host: api.example.com:8080\r\n"},
				{"/login", host + "X-Forwarded-Host: other\r\n"},
				{"/login", host + "X-Forwarded-Host: other\r\nX-Forwarded-Host: other\r\n"},
				{"/login", host + "X_Forwarded_Host: other\r\n"},
				{"/login", host + "X-Forwarded-For: 203.0.113.9\r\n"},
				{"/login", host + "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 203.0.113.10\r\n"},
				{"/login", host + "X-Real-IP: 203.0.113.9\r\nForwarded: for=203.0.113.9;host=other\r\n"},
				{"/login", host + "X-Forwarded-Uri: /\r\nX-Forwarded-Method: GET\r\n"},
				{"/login", host + "X-Original-URI: /\r\nX-Original-Method: GET\r\n"},
				{"/login", host + "Connection: X-Forwarded-For, X-Forwarded-Host\r\n"},
			} {
				assert.Contains(t, []int{429, 400}, do(attack[0], attack[1]), "%s %q", attack[0], attack[1])
			}
			if c.name == "beside nginx" || c.name == "beside Caddy" {
				assert.Equal(t, 400, do("/login", host+"X-Key: a\r\nX-Key: b\r\n"), "ambiguous, and the client is told so")
			}
			if c.name == "beside nginx" { // this nginx serves /login and /a, and passes on everything
				for _, target := range []string{"/login#x", "/login#", "/login?#x", "/a#/../login"} {
					assert.Equal(t, 400, do(target, host), target)
				}
			}
			assert.EqualValues(t, 1, logins.Load(), "the attacks did not come to the upstream")
		})
	}
}

// TestNginxWithoutAStore: if the store is lost and the rule has on_loss: closed, nginx passes no request on.
func TestNginxWithoutAStore(t *testing.T) {
	var reached atomic.Int64
	upstream := newUpstream(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	store, decide := miniredis.RunT(t), freeport.Address(t)
	s := start(t, "decide: "+decide+"\ntrusted_proxies: 127.0.0.1\nstore: {url: \"redis://"+store.Addr()+
		"\", timeout: 2s, on_loss: closed}\nrules: [{name: a, rate: 1/h, burst: 2}]\n")
	nginx := "http://" + startNginx(t, decide, strings.TrimPrefix(upstream, "http://"))
	do := func() (int, http.Header) {
		resp, err := s.client.Get(nginx + "/")
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header
	}
	status, _ := do()
	assert.Equal(t, 200, status)
	store.Close()
	for range 3 {
		status, header := do()
		assert.Equal(t, 503, status, "no 429: it is no limit that the client has reached")
		assert.Empty(t, header.Get("Retry-After"))
	}
	assert.EqualValues(t, 1, reached.Load())
	s.stop()
	status, _ = do()
	assert.Equal(t, 200, status, "a weir that is away lets requests pass")
}

// TestBehindNginx: a real nginx asks weir by auth_request, as docs/operations.md says.
func TestBehindNginx(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
	})
	decide := freeport.Address(t)
	s := start(t, "decide: "+decide+"\ntrusted_proxies: 127.0.0.1\n"+`rules:
  - {name: clients, rate: 1/h, burst: 3}
  - {name: logins, rate: 1/h, burst: 1, match: {path: /login, method: POST}}
`)
	nginx := "http://" + startNginx(t, decide, strings.TrimPrefix(upstream, "http://"))

	do := func(method, path, body string, header ...string) (int, string, http.Header) {
		req, err := http.NewRequest(method, nginx+path, strings.NewReader(body))
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := s.client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text), resp.Header
	}

	status, body, h := do("POST", "/login?next=%2Fa", "secret")
	assert.Equal(t, 200, status)
	assert.Equal(t, "POST /login?next=%2Fa secret", body)
	assert.Equal(t, `"logins";r=0;t=3600`, h.Get("RateLimit"))
	assert.Equal(t, `"clients";q=3;w=10800, "logins";q=1;w=3600`, h.Get("RateLimit-Policy"))

	status, body, h = do("POST", "/login", "secret")
	assert.Equal(t, 429, status, "and not the 403 that nginx was told, nor a 500")
	assert.Equal(t, "3600", h.Get("Retry-After"))
	assert.Equal(t, `"logins";r=0;t=3600`, h.Get("RateLimit"))
	assert.Equal(t, "application/json", h.Get("Content-Type"))
	assert.Equal(t, `{"error":"Too many requests"}`, body)

	// The client writes fields that describe its request and its address. They change nothing.
	status, _, _ = do("POST", "/login", "", "X-Forwarded-For", "203.0.113.9", "X-Forwarded-Uri", "/",
		"X-Forwarded-Method", "GET", "X-Forwarded-Host", "a")
	assert.Equal(t, 429, status)

	status, _, h = do("GET", "/forbidden", "")
	assert.Equal(t, 403, status, "the upstream's own")
	assert.Empty(t, h.Get("Retry-After"))
	status, _, _ = do("GET", "/", "")
	assert.Equal(t, 200, status, "the refused ones took nothing from clients")
	status, _, h = do("GET", "/", "")
	assert.Equal(t, 429, status)
	assert.Equal(t, `"clients";r=0;t=3600`, h.Get("RateLimit"))

	s.stop()
	status, _, _ = do("GET", "/", "")
	assert.Equal(t, 200, status, "as the document says: without weir no request is limited")
}
