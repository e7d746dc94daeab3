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

var (
	// errCramped says that a limiter had no room for a key, and that there is more.
	errCramped = errors.New("there is no room for all keys")
	// errLate says that a request is out of order, and that it is not seen what the log does as it stands.
	errLate = errors.New("the log is out of order")
)

// An attempt is how a log is replayed.
type attempt struct {
	room     int  // for so many keys there is room at most
	asLogged bool // the requests are decided in the order of the log as well
}

// repeat replays a log at the least cost, and when that is not enough at some point begins again: with all the room for
// keys, with the decisions as logged beside the sorted ones, with more lines to be sorted. A stream has all but the
// last at once: to read it again takes a copy of it.
func repeat[R any](log *accesslog.Log, replay func(attempt) (R, error)) (R, error) {
	a := attempt{room: littleRoom}
	if log.Size() < 0 {
		a = attempt{room: allRoom, asLogged: true}
	}
	for {
		result, err := replay(a)
		again := log.Rewind
		switch {
		case errors.Is(err, errCramped):
			a.room = allRoom
		case errors.Is(err, errLate):
			a.asLogged = true
		case errors.Is(err, accesslog.ErrUnsorted):
			again = log.Widen
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
