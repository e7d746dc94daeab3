package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// TestPrometheusAlerts: each alert fires if its fault happens. Without a fault, no alert fires.
func TestPrometheusAlerts(t *testing.T) {
	promtool := installed(t, "promtool")
	folder := inTree("packaging", "prometheus")
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"}, {"check", "rules", "--lint-fatal", "alerts.yml"}, {"test", "rules", "alerts_test.yml"},
	} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}
	var tests struct {
		Tests []struct {
			Cases []struct {
				Expected []struct{ Labels string } `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "packaging/prometheus/alerts_test.yml")), &tests))
	var fired []string
	for _, s := range tests.Tests[1].Cases[0].Expected {
		fired = append(fired, strings.TrimSuffix(strings.TrimPrefix(s.Labels, `{alertname="`), `"}`))
	}
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
	}
	assert.ElementsMatch(t, names, fired, "alerts and their tests")
}

type alert struct{ Alert, Expr string }

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "packaging/prometheus/alerts.yml")), &file))
	return file.Groups[0].Rules
}

// boardQueries returns the queries of the Grafana board by panel. It inserts values for the variables.
func boardQueries(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "packaging/grafana/weir.json")), &board))
	values := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*", "$rule", ".*")
	queries := map[string]string{}
	for _, p := range board.Panels {
		for i, target := range p.Targets {
			queries[fmt.Sprintf("%s, query %d", p.Title, i+1)] = values.Replace(target.Expr)
		}
	}
	return queries
}

// TestBoardAndAlertsReadWhatWeirSays: with the metrics of a running weir, every query of the board has a result. A
// running weir also has every metric that the alerts need.
func TestBoardAndAlertsReadWhatWeirSays(t *testing.T) {
	promtool := installed(t, "promtool")
	metrics := metricsOfARunningWeir(t)
	out, err := func() ([]byte, error) {
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(metrics)
		return cmd.CombinedOutput()
	}()
	assert.NoError(t, err, "%s", out)

	queries := boardQueries(t)
	assert.Greater(t, len(queries), 30)
	metric := regexp.MustCompile(`\bweir_\w+`)
	for _, a := range alerts(t) {
		for _, name := range metric.FindAllString(a.Expr, -1) {
			queries[a.Alert+", "+name] = name
		}
	}
	queries["up"] = "up"

	var test strings.Builder
	test.WriteString("tests:\n- interval: 1m\n  input_series:\n  - {series: 'up{job=\"weir\", instance=\"a\"}', values: 1x10}\n")
	for line := range strings.Lines(metrics) {
		name, number, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found || line[0] == '#' || strings.Contains(name, "\\") {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		require.NoError(t, err, line)
		name, labels, _ := strings.Cut(name, "{")
		fmt.Fprintf(&test, "  - {series: '%s{job=\"weir\", instance=\"a\", %s}', values: '%sx10'}\n",
			name, strings.TrimSuffix(labels, "}"), strconv.FormatFloat(v, 'f', -1, 64))
	}
	test.WriteString("  promql_expr_test:\n")
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		fmt.Fprintf(&test, "  - {expr: %q, eval_time: 9m, exp_samples: [{value: 1}]} # %s\n", "count("+queries[name]+") > bool 0", name)
	}
	path := filepath.Join(t.TempDir(), "running.yml")
	require.NoError(t, os.WriteFile(path, []byte(test.String()), 0o600))
	out, err = exec.Command(promtool, "test", "rules", path).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

// TestKit: a package of weir has a page for every command, and the license of every module that is compiled in.
func TestKit(t *testing.T) {
	made := t.TempDir()
	out, err := exec.Command(inTree("packaging", "kit"), "licenses", made).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, module := range []string{"weir", "go", "github.com/alecthomas/kong", "golang.org/x/sys"} {
		found, err := filepath.Glob(filepath.Join(made, module, "LICENSE*"))
		require.NoError(t, err)
		found = append(found, filepath.Join(made, module, "COPYING"))
		assert.FileExists(t, found[0], module)
	}
	out, err = exec.Command(inTree("packaging", "kit"), "wine", made).CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "want man, licenses or sbom")

	installed(t, "help2man")
	out, err = exec.Command(inTree("packaging", "kit"), "man", made).CombinedOutput()
	require.NoError(t, err, "%s", out)
	page, err := os.ReadFile(filepath.Join(made, "weir-serve.1"))
	require.NoError(t, err)
	assert.Contains(t, string(page), `weir \- Limit HTTP requests on their way to an upstream server`)
	for command := range strings.FieldsSeq("check completion health replay serve sim table version") {
		assert.FileExists(t, filepath.Join(made, "weir-"+command+".1"))
	}
}

// metricsOfARunningWeir returns the metrics of a program that has served, refused and failed requests. Its rules count
// in a file and in a store.
func metricsOfARunningWeir(t *testing.T) string {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(upstream.Close)
	state := t.TempDir()
	require.NoError(t, os.Chmod(state, 0o700))
	s := startProgram(t, "serve", file(t, "weir.yaml", fmt.Sprintf(`listen: 127.0.0.1:0
admin: 127.0.0.1:0
state: %s
upstream: %s
store: {url: "redis://127.0.0.1:1", nodes: 2, on_loss: share}
rules:
  - {name: clients, rate: 1/m, burst: 5, max_keys: 100, store: false}
  - {name: tried, rate: 1/m, max_keys: 100, shadow: true, store: false}
  - {name: all, key: global, rate: 1000/s, burst: 1000}
`, state, upstream.URL)))
	url := s.until(`msg=listening url=(\S+) for=clients`)[0]
	admin := s.until(`msg=listening url=(\S+) for=administrators`)[0]
	get := func(url string) string {
		response, err := http.Get(url)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(text)
	}
	get(url + "broken")
	for range 7 {
		get(url)
	}
	return get(admin + "metrics")
}
