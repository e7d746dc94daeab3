package caddylimit_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatIsOwedOutlivesTheProcess: a Caddy with a state folder that restarts while its store is lost gets no second
// share. Later the store is charged with the tokens admitted before the restart.
func TestWhatIsOwedOutlivesTheProcess(t *testing.T) {
	address, redis := startRedis(t)
	for name, limit := range map[string]string{"rate": `"rate":"100/d"`, "quota": `"rate":"1/d","quota":"100/d{http.request.header.None}"`} {
		folder := t.TempDir()
		config := `{"store":"redis://` + address + `","state":"` + folder + `","limits":[{"name":"owed ` + name + `",` + limit + `}]}`
		c := start(t, config)
		redis.Kill()
		assert.Equal(t, 25, passed(c, 60), "the share")
		c.Stop(t)
		files, err := filepath.Glob(folder + "/owed_" + name + "-*.debts")
		require.NoError(t, err)
		require.Len(t, files, 1)
		c = start(t, config)
		assert.Zero(t, passed(c, 3), "the share was spent")
		_, redis = startRedisAt(t, address)
		admitted := 0
		for deadline := time.Now().Add(time.Minute); admitted < 75 && time.Now().Before(deadline); {
			admitted += passed(c, 1)
		}
		assert.Equal(t, 75, admitted)
		assert.Zero(t, passed(c, 3), "100 are all")
		c.Stop(t)
		files, err = filepath.Glob(folder + "/*")
		require.NoError(t, err)
		assert.Empty(t, files, "nothing is owed")
	}
}
