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
	cellBits    = 8
	planBits    = 2

	timeMask     = 1<<timeBits - 1
	versionShift = timeBits
	versionMask  = 1<<versionBits - 1
	parityShift  = versionShift + versionBits
	cellShift    = parityShift + parityBits
	cellMask     = 1<<cellBits - 1
	planShift    = cellShift + cellBits
	planMask     = 1<<planBits - 1
)

// A state is the content of the shared word: see the package comment.
type state uint64

// cell returns the number, from 1 on, of the cell whose exchange made this state, or 0 if no exchange did.
func (s state) cell() int { return int(s >> cellShift & cellMask) }

func (s state) parity() uint64 { return uint64(s>>parityShift) & 1 }

// plan returns the number that says which terms are current.
func (s state) plan() uint64 { return uint64(s >> planShift) }

// next returns the state after s, with another time at which the bucket is full. The new state names no exchange.
func (s state) next(full uint64) state {
	version := (uint64(s>>versionShift) + 1) & versionMask
	return state(full&timeMask | version<<versionShift | s.plan()<<planShift)
}

// madeBy returns s as the state that the current exchange of the cell c makes. The argument number is the cell's
// number.
func (s state) madeBy(number int, c cell) state {
	return s | state(uint64(number)<<cellShift|c.parity()<<parityShift)
}

func (s state) withPlan(plan uint64) state {
	return s&^(planMask<<planShift) | state(plan&planMask)<<planShift
}

// halfCircle is half the circle of ticks. If a time seems to be further in the future than this, it counts as past.
const halfCircle = 1 << (timeBits - 1)

// debt returns the ticks from now until the bucket is full.
func (s state) debt(now uint64) uint64 {
	if d := (uint64(s) - now) & timeMask; d <= halfCircle {
		return d
	}
	return 0
}

// bucketState returns the state of a bucket with a debt, in the form that package atomicbucket uses.
func bucketState(now, debt uint64) atomicbucket.State {
	return atomicbucket.NewState(atomicbucket.Live, 0, now+debt)
}

func (s state) String() string {
	return fmt.Sprintf("{full at %d, v%d, cell %d.%d, plan %d}", uint64(s)&timeMask, uint64(s>>versionShift)&versionMask,
		s.cell(), s.parity(), s.plan())
}
