package serve

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nginxOfTheDocument returns the configuration that docs/operations.md shows.
func nginxOfTheDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindAllSubmatch(text, -1)
	require.Len(t, found, 1)
	return string(found[0][1])
}

// startNginx starts nginx with the configuration of the document, and returns its address. The
// addresses there are replaced by free ones.
func startNginx(t *testing.T, weir, upstream string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/nginx") // not in every PATH
	}
	if err != nil {
		t.Skip("nginx is not installed: make test-nginx does that")
	}
	dir, address := t.TempDir(), freeAddress(t)
	server := strings.NewReplacer(
		"listen 80;", "listen "+address+";", "127.0.0.1:8090", weir, "127.0.0.1:3000", upstream,
	).Replace(nginxOfTheDocument(t))
	require.Contains(t, server, address)
	require.Contains(t, server, weir)
	require.Contains(t, server, upstream)
	conf := filepath.Join(dir, "nginx.conf")
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("\t%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil,
		"daemon off;\nmaster_process off;\npid %s;\nerror_log stderr notice;\nevents {}\nhttp {\n\taccess_log off;\n%s%s}\n",
		filepath.Join(dir, "pid"), temp, server), 0o600))
	startProgram(t, address, exec.Command(program, "-p", dir, "-c", conf))
	return address
}

// TestBehindNginx: a real nginx asks by auth_request, with the configuration of docs/operations.md.
func TestBehindNginx(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
	})
	decide := freeAddress(t)
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

	// What a client claims about its request and address changes nothing.
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
