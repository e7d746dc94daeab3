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

// An attempt is how a log is replayed.
type attempt struct {
	room     int  // for so many keys there is room at most
	asLogged bool // the requests are decided in the order of the log as well
}

// repeat replays a log at the least cost, and when that is not enough at some point begins again: with all the room for
// keys, with more lines to be sorted and the decisions as logged beside the sorted ones. A stream has all but the disk
// at once: to read it again takes a copy of it.
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
