//go:build explore

package lease

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// A store does what the server does, at one moment: time passes there only before the threads begin, so only tokens
// that are given back come back.
type store struct {
	left int64 // of the limit; below 0 by what was charged as debt beyond it
	net  int64 // charged to this node, less what it gave back
	back int64 // what came back with time
}

// ask does what is asked.
func (s *store) ask(a script.Ask, limit uint64) script.Answer {
	s.charge(int64(a.Debt) - int64(a.Returned))
	room := uint64(max(s.left, 0))
	answer := script.Answer{Window: 1}
	if room < a.Need {
		answer.RetryAfter = retryAfter
	} else {
		answer.Granted = min(a.Want, max(a.Need, room/4), room)
	}
	s.charge(int64(answer.Granted))
	answer.Remaining = room - answer.Granted
	answer.ResetAfter = time.Duration(int64(limit) - s.left)
	return answer
}

// refill is time that passes.
func (s *store) refill(n int64) {
	s.left += n
	s.back += n
}

func (s *store) charge(n int64) {
	s.left -= n
	s.net += n
}

// retryAfter is how long the store says that there will be no tokens.
const retryAfter = 10

// The ways of a question.
const (
	answered = iota
	answerLost
	questionLost
	ways
)
