//go:build frameworks

package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/cmd/internal/rules"
	"github.com/weir-go/weir/internal/freeport"
)

// frameworks has the commands that start servers. Each server answers with what it has read from the request. The last
// argument of a command is the port.
var frameworks = map[string][]string{
	"Express with cookie-parser and qs": {"node", "node.js", "express"},
	"Fastify with @fastify/cookie":      {"node", "node.js", "fastify"},
	"Flask":                             {"/usr/bin/python3", "python.py", "flask"},
	"Django":                            {"/usr/bin/python3", "python.py", "django"},
	"FastAPI":                           {"/usr/bin/python3", "python.py", "fastapi"},
	"Tornado":                           {"/usr/bin/python3", "python.py", "tornado"},
	"PHP":                               {"php", "-S", "", "php.php"},
	"Rack":                              {"ruby", "rack.rb", "rack"},
}

// fieldsOfFrameworks has the fields that these servers read. The values are the keys of rules for these fields.
var fieldsOfFrameworks = map[string]string{"cookie": "cookie:sid", "query": "query:k", "header": "header:X-Api-Key"}

const frameworkRules = "rules:\n" +
	"  - {name: cookie, rate: 1000000/s, key: cookie:sid or none}\n" +
	"  - {name: query, rate: 1000000/s, key: query:k or none}\n" +
	"  - {name: header, rate: 1000000/s, key: header:X-Api-Key or none}\n"

// TestFrameworks sends thousands of spellings of a request through weir to real servers. If a server reads the same
// value in two requests, weir must charge both to the same bucket. make test-frameworks installs the servers.
func TestFrameworks(t *testing.T) {
	for name, program := range frameworks {
		t.Run(name, func(t *testing.T) { testFramework(t, startFramework(t, program)) })
	}
	t.Run("Go", func(t *testing.T) {
		testFramework(t, newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			seen := map[string]any{"query": fmt.Sprintf("%x", r.URL.Query().Get("k")),
				"header": fmt.Sprintf("%x", strings.TrimSpace(r.Header.Get("X-Api-Key")))}
			if cookie, err := r.Cookie("sid"); err == nil {
				seen["cookie"] = fmt.Sprintf("%x", cookie.Value)
			}
			_ = json.NewEncoder(w).Encode(seen)
		}))
	})
}

func startFramework(t *testing.T, program []string) string {
	port := strconv.Itoa(freeport.Number(t))
	args := append([]string{}, program[1:]...)
	if program[0] == "php" {
		args[1] = "127.0.0.1:" + port
	} else {
		args = append(args, port)
	}
	folder, err := filepath.Abs("testdata/frameworks")
	require.NoError(t, err)
	cmd := exec.Command(program[0], args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("WEIR_NODE_MODULES"))
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%.2000s", text)
		}
	})
	for range 300 { // until the server listens
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = conn.Close()
			return "http://127.0.0.1:" + port
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the server does not listen")
	return ""
}

func testFramework(t *testing.T, upstream string) {
	s := start(t, "upstream: "+upstream+"\n"+frameworkRules)
	file, err := rulefile.Parse("weir.yaml", []byte("listen: 127.0.0.1:0\n"+frameworkRules))
	require.NoError(t, err)
	ip, err := rules.ClientIP(file)
	require.NoError(t, err)
	all, err := rules.Compile(file, ip)
	require.NoError(t, err)
	keys := map[string]map[string]string{} // by the field and value that a server has read: requests by their keys
	requests, refused, many := 0, 0, 0
	for field, spelled := range spellingsOf() {
		for _, spelling := range spelled {
			text := "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n" + headerOf(field, spelling) + "\r\n"
			if field == "query" {
				text = strings.Replace(text, "GET /", "GET /?k="+spelling, 1)
			}
			requests++
			seen, status := sendText(t, s, text)
			if status == http.StatusBadRequest && strings.Contains(fmt.Sprint(seen), "The request is ambiguous") {
				refused++ // refused by weir, and not by the server
			}
			if status != 200 || seen[field] == nil || fmt.Sprint(seen[field]) == "" {
				continue // the server reads nothing, or refuses the request
			}
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
			require.NoError(t, err)
			for _, rule := range all {
				if rule.Name != field {
					continue
				}
				read := field + " " + fmt.Sprint(seen[field])
				if keys[read] == nil {
					keys[read] = map[string]string{}
				}
				keys[read][strings.Join(rule.KeyTexts(r), " ")] = spelling
			}
		}
	}
	for read, of := range keys {
		if len(of) > 1 {
			many++
			assert.LessOrEqual(t, len(of), 1, "%q: %q", read, of)
		}
	}
	t.Logf("%d requests, %d answered 400, %d values read, %d of them with several keys", requests, refused, len(keys), many)
	assert.Greater(t, requests, 1000)
	assert.Zero(t, refused)
	assert.NotEmpty(t, keys)
}

func headerOf(field, spelling string) string {
	switch field {
	case "cookie":
		return "Cookie: a=b; sid=" + spelling + "\r\n"
	case "header":
		return "X-API-Key: " + spelling + "\r\n"
	}
	return ""
}

func sendText(t *testing.T, s *running, text string) (seen map[string]any, status int) {
	resp, err := http.ReadResponse(bufio.NewReader(s.dial(text)), nil)
	require.NoError(t, err, "%q", text)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	_ = json.Unmarshal(body, &seen)
	return seen, resp.StatusCode
}

// spellingsOf returns spellings of a few values for each field.
func spellingsOf() map[string][]string {
	random := rand.New(rand.NewPCG(5, 6))
	one := func(ways ...string) string { return ways[random.IntN(len(ways))] }
	around := map[string][]string{
		"cookie": {"", "", "", " ", "\t", "\xa0", "\x85", "\u3000"},
		"query":  {"", "", "", "+", "%20", "%09", "%C2%A0", "%01", "%E3%80%80"},
		"header": {"", "", " ", "\t", "\xa0", "\x85"},
	}
	spelled := map[string][]string{}
	for field := range fieldsOfFrameworks {
		for range 80 {
			for _, value := range []string{"V", "ab", "a+b", "\u00e9", "12"} {
				var b strings.Builder
				json := field == "cookie" && random.IntN(3) == 0
				for _, c := range []byte(value) {
					switch {
					case field == "header":
						b.WriteByte(c)
					case json && random.IntN(2) == 0 && c < 0x80:
						fmt.Fprintf(&b, `\u%04x`, c)
					case random.IntN(2) == 0:
						fmt.Fprintf(&b, one("%%%02x", "%%%02X"), c)
					default:
						b.WriteByte(c)
					}
				}
				text := b.String()
				switch {
				case json:
					text = "j:" + one("", " ", "%20", "\t", "%0a") + `"` + text + `"`
				case field == "cookie" && random.IntN(4) == 0:
					text = `"` + text + `"`
				}
				spelled[field] = append(spelled[field], one(around[field]...)+text+one(around[field]...))
			}
		}
	}
	return spelled
}
