package accesslog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestClientFromAHeader: the client is the last address that a proxy has written into the header field. Of several
// fields with the name, the last one counts.
func TestClientFromAHeader(t *testing.T) {
	line := func(forwarded string) string {
		return fmt.Sprintf(`{"time_iso8601":"2026-11-20T09:00:00Z","remote_addr":"10.0.0.1","request":"GET / HTTP/1.1","status":200`+
			`,"http_x_forwarded_for":%q}`+"\n", forwarded)
	}
	log := NewLog(strings.NewReader(line("192.0.2.1") + line("192.0.2.9, 192.0.2.2") + line("192.0.2.9, [2001:db8::1]:443") +
		line("192.0.2.9,") + line("-") + line("")))
	require.NoError(t, log.ClientFrom("X-Forwarded-For"))
	assert.Equal(t, []string{
		"192.0.2.1", "192.0.2.2", "2001:db8::1", "line 4: X-Forwarded-For: no client", "line 5: X-Forwarded-For: no client",
		"line 6: X-Forwarded-For: no client",
	}, clients(t, log))

	log = NewLog(strings.NewReader(line("192.0.2.1")))
	assert.EqualError(t, log.ClientFrom("Forwarded"),
		"the log does not have the header field Forwarded of requests (its format is nginx_json)")
	assert.Equal(t, []string{"10.0.0.1"}, clients(t, log))
	assert.ErrorContains(t, NewLog(strings.NewReader("hello")).ClientFrom("Referer"), "line 1 is in no known format")
}
