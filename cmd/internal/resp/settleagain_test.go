package resp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestASettlementThatIsRepeatedFreesOnce: if a hold is settled several times, its tokens come back once.
func TestASettlementThatIsRepeatedFreesOnce(t *testing.T) {
	d := open(t)
	id := d.ask("WEIR.HOLD a LIMIT 100/20d COST 40 FOR 3600")["id"]
	require.Equal(t, "1", d.ask("WEIR.TAKE a LIMIT 100/20d COST 50")["allowed"])
	require.Equal(t, "settled", d.ask("WEIR.SETTLE " + id + " 0")["outcome"])
	require.Equal(t, "50", d.ask("WEIR.PEEK a LIMIT 100/20d")["remaining"])
	for range 59 {
		d.clock.nanos.Add(int64(time.Minute))
		assert.Equal(t, "repeated", d.ask("WEIR.SETTLE " + id + " 0")["outcome"])
	}
	assert.Equal(t, "50", d.ask("WEIR.PEEK a LIMIT 100/20d")["remaining"])
}
