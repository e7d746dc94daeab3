package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestHowManyNewKeysFindNoRoom: with MaxKeys keys that are not idle it is one in some five hundred in a table that was
// just filled, and one in a thousand or more once all keys have come and gone. The bounds are generous: the hash is
// another in each run.
func TestHowManyNewKeysFindNoRoom(t *testing.T) {
	const keys, tries = 100_000, 100_000
	l, _ := newLimiter(t, TokenBucket(Per(1, time.Hour), 1), MaxKeys(keys), Overflow(Refuse))
	id := uint64(0)
	insert := func() Key { // a key for which there is room
		for {
			id++
			if k := l.KeyUint64(id); l.AllowKey(k) {
				return k
			}
		}
	}
	oneIn := func() float64 {
		before := l.Stats().NoRoom
		for range tries {
			id++
			if k := l.KeyUint64(id); l.AllowKey(k) {
				l.Reset(k)
			}
		}
		return tries / float64(l.Stats().NoRoom-before)
	}
	live := make([]Key, keys)
	for i := range live {
		live[i] = insert()
	}
	fresh := oneIn()
	for range 2 {
		for i := range live {
			l.Reset(live[i])
			live[i] = insert()
		}
	}
	used := oneIn()
	t.Logf("one in %.0f, and one in %.0f", fresh, used)
	assert.Greater(t, fresh, 200.)
	assert.Less(t, fresh, 1500.)
	assert.Greater(t, used, 400.)
	assert.Less(t, used, 5000.)
}
