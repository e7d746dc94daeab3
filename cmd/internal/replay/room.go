package replay

import (
	"errors"
	"math"

	"github.com/weir-go/weir/cmd/internal/accesslog"
)

const (
	// smallRoom is the number of keys for which a limiter has room at first. It is small because the engine sweeps its
	// table whenever the time of the log jumps by hours or days. For a log of a year with a few thousand keys, sweeping
	// a table for a million keys would take longer than everything else.
	smallRoom = 1 << 15
	fullRoom  = math.MaxInt
	// checkInterval is a number of requests. After that many, the replay checks whether there was room for all keys.
	checkInterval = 4096
)

// errCramped means that a limiter had no room for a key, although it could have had more room.
var errCramped = errors.New("there is no room for all keys")

// An attempt says how a log is replayed.
type attempt struct {
	room     int  // the largest number of keys
	asLogged bool // the requests are also decided in the order of the log
}

// repeat replays a log with little memory. If that is not enough, it starts over with room for all keys, or with more
// lines for sorting. If the log must be sorted, the requests are also decided in the order of the log. A stream is
// different, because it can be read again only from a copy. So the first attempt for a stream has room for all keys and
// also decides in the order of the log. Only sorting on disk then needs another attempt.
func repeat[R any](log *accesslog.Log, replay func(attempt) (R, error)) (R, error) {
	a := attempt{room: fullRoom, asLogged: true}
	if log.Reopens() {
		a = attempt{room: smallRoom}
		log.DisableSorting()
	}
	for {
		result, err := replay(a)
		restart := log.Rewind
		switch {
		case errors.Is(err, errCramped):
			a.room = fullRoom
		case errors.Is(err, accesslog.ErrUnsorted):
			a.asLogged, restart = true, log.Widen
		default:
			return result, err
		}
		if err := restart(); err != nil {
			return result, err
		}
	}
}

func (r *run) isCramped() bool {
	if r.room == fullRoom {
		return false
	}
	for _, l := range r.limiters {
		if s := l.Stats(); s.Evictions > 0 || s.NoRoom > 0 || s.Unrecorded > 0 {
			return true
		}
	}
	return false
}
