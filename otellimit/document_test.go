package otellimit_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
	"github.com/weir-go/weir/otellimit"
	"github.com/weir-go/weir/otellimit/internal/collected"
	"github.com/weir-go/weir/otellimit/otelredis"
	"github.com/weir-go/weir/redislimit"
)

// everything registers all kinds of limiters and fronts, and returns their metrics.
func everything(t *testing.T) []metricdata.Metrics {
	t.Helper()
	reader := sdk.NewManualReader()
	p := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(t.Context())) })
	limits := []httplimit.Limit{{Name: "a", Limiter: bucket(t, 1)}}
	_, err := otellimit.RegisterHTTP(p, limits)
	require.NoError(t, err)
	_, err = otellimit.RegisterRefusals(p, "a", new(otellimit.Refusals))
	require.NoError(t, err)
	m, err := httplimit.New(limits)
	require.NoError(t, err)
	_, err = otellimit.RegisterWaiting(p, "web", m)
	require.NoError(t, err)

	client, err := redislimit.Open(t.Context(), "redis://"+miniredis.RunT(t).Addr())
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	stored, err := redislimit.New(client, "a", engine.TokenBucket(engine.Per(1, time.Hour), 1))
	require.NoError(t, err)
	t.Cleanup(func() { stored.Close() })
	_, err = otelredis.Register(p, "a", stored)
	require.NoError(t, err)
	_, err = otelredis.RegisterStore(p, "main", client)
	require.NoError(t, err)
	return collected.Metrics(t, reader)
}

// attributes returns a metric's attribute keys, and the values of each key. It leaves out values that a program
// chooses.
func attributes(m metricdata.Metrics) (keys []string, values map[string][]string) {
	values = map[string][]string{}
	note := func(kv []string) {
		if !slices.Contains(keys, kv[0]) {
			keys = append(keys, kv[0])
		}
		if !strings.HasSuffix(kv[0], ".name") && !slices.Contains(values[kv[0]], kv[1]) {
			values[kv[0]] = append(values[kv[0]], kv[1])
		}
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				note([]string{string(kv.Key), kv.Value.AsString()})
			}
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				note([]string{string(kv.Key), kv.Value.AsString()})
			}
		}
	}
	slices.Sort(keys)
	return keys, values
}

var code = regexp.MustCompile("`([^`]+)`")

// spans returns the code spans in a cell.
func spans(cell string) (all []string) {
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// rows searches the tables of a document for rows with the given number of cells that begin with names. For each name,
// it returns the other cells of the row.
func rows(text string, cells int) map[string][]string {
	found := map[string][]string{}
	for line := range strings.Lines(text) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if names := spans(row[0]); len(row) == cells && len(names) > 0 && strings.HasPrefix(line, "|") {
			for _, name := range names {
				found[name] = row[1:]
			}
		}
	}
	return found
}

// TestNamesOfTheDocument: the table in docs/opentelemetry.md has all metrics. The names for Prometheus in that table
// also occur in docs/operations.md.
func TestNamesOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/opentelemetry.md")
	require.NoError(t, err)
	operations, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	metrics, meanings := rows(string(text), 6), rows(string(text), 2)
	form := regexp.MustCompile(`^weir(\.[a-z]+(_[a-z]+)*)+$`)
	seen := map[string]bool{}
	for _, m := range everything(t) {
		row := metrics[m.Name]
		if !assert.NotNil(t, row, "docs/opentelemetry.md does not name %s", m.Name) {
			continue
		}
		seen[m.Name] = true
		assert.Regexp(t, form, m.Name)
		assert.Equal(t, collected.Kind(m), strings.TrimSpace(row[0]), m.Name)
		assert.Equal(t, []string{m.Unit}, spans(row[1]), m.Name)
		assert.NotEmpty(t, m.Description, m.Name)
		keys, values := attributes(m)
		said := spans(row[2])
		slices.Sort(said)
		assert.Equal(t, keys, said, m.Name)
		for key, all := range values {
			for _, value := range all {
				if assert.NotEmpty(t, meanings[key], key) {
					assert.Contains(t, spans(meanings[key][0]), value, "docs/opentelemetry.md does not name this value of %s", key)
				}
			}
		}
		for _, name := range spans(row[4]) {
			assert.Contains(t, string(operations), "`"+name, "docs/operations.md does not know %s", name)
		}
	}
	for name := range metrics {
		assert.True(t, seen[name], "docs/opentelemetry.md names %s, which there is not", name)
	}
	assert.Greater(t, len(seen), 20)
}

// TestNoClientOfRedisIsLinked: otellimit without otelredis links neither a client of Redis nor the SDK of
// OpenTelemetry.
func TestNoClientOfRedisIsLinked(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	imported := strings.Fields(string(out))
	assert.Contains(t, imported, "go.opentelemetry.io/otel/metric")
	for _, path := range imported {
		assert.NotRegexp(t, "rueidis|redislimit|otel/sdk", path)
	}
}
