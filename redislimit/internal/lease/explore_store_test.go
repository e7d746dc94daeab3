//go:build explore

package lease

import (
	"time"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// A store does in one step what the server does.
type store struct {
	left int64 // tokens left of the limit; below 0 if debt was charged beyond the limit
	net  int64 // tokens charged to this node, minus those that it gave back
	back int64 // tokens that came back with time
}

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

func (s *store) refill(n int64) {
	s.left += n
	s.back += n
}

func (s *store) charge(n int64) {
	s.left -= n
	s.net += n
}

const retryAfter = 10

const (
	answered = iota
	answerLost
	questionLost
	ways
)
