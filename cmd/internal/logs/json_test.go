package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/cmd/internal/rulefile"
	"github.com/weir-go/weir/engine"
)

// TestJSONHasNoStructs: if the text log writes a value as a text, the JSON log writes the same text, not the fields of
// the value.
func TestJSONHasNoStructs(t *testing.T) {
	var out bytes.Buffer
	l := New(&out, rulefile.Log{Format: rulefile.LogJSON})
	rule := rulefile.NewRule("login")
	l.Info("limiting", "policy", engine.TokenBucket(engine.Per(5, time.Hour), 7), "key", rule.Key, "for", rule.Match,
		"list", []string{"a", "b"}, "err", errors.New("odd"), "wait", time.Second, "n", 1)
	l.Close()
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	delete(line, "time")
	assert.Equal(t, map[string]any{"level": "INFO", "msg": "limiting", "policy": "token bucket 5/h burst 7", "key": "ip",
		"for": rule.Match.String(), "list": "[a b]", "err": "odd", "wait": 1e9, "n": 1.0}, line)
}
