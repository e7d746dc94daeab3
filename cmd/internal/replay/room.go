package replay

import (
	"errors"
	"math"

	"github.com/weir-go/weir/cmd/internal/accesslog"
)

const (
	// littleRoom is the number of keys for which a limiter has room at first. The time of a log leaps, and the engine
	// must sweep its table at each leap of some hours or days. For a year of a log with a few thousand keys, sweeping a
	// table for a million keys would take longer than everything else.
	littleRoom = 1 << 15
	allRoom    = math.MaxInt
	// betweenLooks is how many requests there are between two checks of the room.
	betweenLooks = 4096
)

// errCramped says that a limiter had no room for a key, and could have more room.
var errCramped = errors.New("there is no room for all keys")

// An attempt is how a log is replayed.
type attempt struct {
	room     int  // the largest number of keys
	asLogged bool // the requests are also decided in the order of the log
}

// repeat replays a log with little memory, and starts over whenever that is not enough: with room for all keys, with
// more lines for sorting, and with the decisions in logged order in addition to the sorted ones. A stream starts with
// all of these except sorting on disk, because reading it again needs a copy of it.
func repeat[R any](log *accesslog.Log, replay func(attempt) (R, error)) (R, error) {
	a := attempt{room: allRoom, asLogged: true}
	if log.Reopens() {
		a = attempt{room: littleRoom}
		log.HoldNone()
	}
	for {
		result, err := replay(a)
		again := log.Rewind
		switch {
		case errors.Is(err, errCramped):
			a.room = allRoom
		case errors.Is(err, accesslog.ErrUnsorted):
			a.asLogged, again = true, log.Widen
		default:
			return result, err
		}
		if err := again(); err != nil {
			return result, err
		}
	}
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
