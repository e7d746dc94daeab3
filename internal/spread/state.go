package spread

import (
	"fmt"

	"github.com/weir-go/weir/atomicbucket"
)

// Widths of the fields of a [state], from the lowest on.
const (
	timeBits    = 46
	versionBits = 7
	parityBits  = 1
	whoBits     = 8
	planBits    = 2

	timeMask     = 1<<timeBits - 1
	versionShift = timeBits
	versionMask  = 1<<versionBits - 1
	parityShift  = versionShift + versionBits
	whoShift     = parityShift + parityBits
	whoMask      = 1<<whoBits - 1
	planShift    = whoShift + whoBits
	planMask     = 1<<planBits - 1
)

// A state is the content of the shared word: see the package comment.
type state uint64

// who returns the number, from 1 on, of the cell whose exchange made this state, or 0 if no exchange did.
func (s state) who() int { return int(s >> whoShift & whoMask) }

func (s state) parity() uint64 { return uint64(s>>parityShift) & 1 }

// plan returns the number that says which terms are current.
func (s state) plan() uint64 { return uint64(s >> planShift) }

// next returns the state after s, with another time at which the bucket is full. The new state names no exchange.
func (s state) next(full uint64) state {
	version := (uint64(s>>versionShift) + 1) & versionMask
	return state(full&timeMask | version<<versionShift | s.plan()<<planShift)
}

// The method by returns s as the state that the current exchange of a cell makes.
func (s state) by(who int, c cell) state {
	return s | state(uint64(who)<<whoShift|c.parity()<<parityShift)
}

func (s state) under(plan uint64) state {
	return s&^(planMask<<planShift) | state(plan&planMask)<<planShift
}

// narrow is half the circle. If a time seems to be further in the future than this, it counts as past.
const narrow = 1 << (timeBits - 1)

// debt returns the ticks from now until the bucket is full.
func (s state) debt(now uint64) uint64 {
	if d := (uint64(s) - now) & timeMask; d <= narrow {
		return d
	}
	return 0
}

// owing returns the state of a bucket with a debt, in the form that package atomicbucket uses.
func owing(now, debt uint64) atomicbucket.State {
	return atomicbucket.NewState(atomicbucket.Live, 0, now+debt)
}

func (s state) String() string {
	return fmt.Sprintf("{full at %d, v%d, cell %d.%d, plan %d}", uint64(s)&timeMask, uint64(s>>versionShift)&versionMask,
		s.who(), s.parity(), s.plan())
}
