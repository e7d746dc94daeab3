package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/engine"
)

// TestFewClientsMayBeProxies: if three clients send 99 % of at least 1,000 requests, they may be proxies.
func TestFewClientsMayBeProxies(t *testing.T) {
	log := func(others, each int) string {
		var text strings.Builder
		for i := range others {
			text.WriteString(line(fmt.Sprint("c", i), 0))
		}
		for _, proxy := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			text.WriteString(strings.Repeat(line(proxy, 0), each))
		}
		return text.String()
	}
	for name, c := range map[string]struct {
		others, each int
		want         string
	}{
		"enough":         {10, 330, "99.00 % of the requests are of 10.0.0.1, 10.0.0.2, 10.0.0.3. If that is your proxy"},
		"not enough":     {11, 330, ""},
		"too short":      {0, 333, ""},
		"many clients":   {1_100, 100_000, ""}, // the proxies come after the clients that are counted
		"before the end": {900, 30_000, "99.01 % of the requests"},
	} {
		report, err := replay(t, strings.NewReader(log(c.others, c.each)), engine.PerSecond(1), 1)
		require.NoError(t, err)
		if c.want == "" {
			assert.Empty(t, report.ProxyNote, name)
			continue
		}
		assert.Contains(t, report.ProxyNote, c.want, name)
		var out strings.Builder
		require.NoError(t, report.WriteTable(&out, 0))
		assert.Contains(t, out.String(), "\n\n"+report.ProxyNote+"\n", name)
	}
}
