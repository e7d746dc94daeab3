package replay

import (
	"errors"
	"math"

	"github.com/weir-go/weir/cmd/internal/accesslog"
)

const (
	// littleRoom is for how many keys a limiter has room at first. The time of a log leaps: the engine has to sweep its
	// table at each leap of some hours or days, and in a year of a log the sweeps of a table for a million keys, of
	// which a few thousand are there, take longer than everything else.
	littleRoom = 1 << 15
	allRoom    = math.MaxInt
	// betweenLooks is how many requests there are between two looks at whether the room is enough.
	betweenLooks = 4096
)

// errCramped says that a limiter had no room for a key, and that there is more.
var errCramped = errors.New("there is no room for all keys")

// withRoom replays a log with little room for keys. If that is not enough at some point, it does so again with all the
// room there is. A log that can be read only once has that at once.
func withRoom[R any](log *accesslog.Log, replay func(room int) (R, error)) (R, error) {
	if log.Rewind() {
		if result, err := replay(littleRoom); !errors.Is(err, errCramped) {
			return result, err
		}
		log.Rewind()
	}
	return replay(allRoom)
}

// isCramped reports whether a limiter had no room for a key although it might have more.
func (r *run) isCramped() bool {
	if r.room == allRoom {
		return false
	}
	for _, l := range r.limiters {
		if s := l.Stats(); s.Evictions > 0 || s.NoRoom > 0 || s.Unrecorded > 0 {
			return true
		}
	}
	return false
}
