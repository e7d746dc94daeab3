package redislimit

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

// A question that no caller waits for is not asked: its token would be charged and never spent.
func TestQuestionsThatAreGivenUpAreNotAsked(t *testing.T) {
	var givenUp atomic.Bool
	givenUp.Store(true)
	q := queue{senders: 1}
	for i := range 3 * defaults.PerCall {
		one := question{answered: func(script.Answer, error) {}, key: string(rune('a' + i%2))}
		if i%2 == 1 {
			one.givenUp = &givenUp
		}
		q.waiting = append(q.waiting, one)
	}
	for _, want := range []int{defaults.PerCall, defaults.PerCall / 2, 0} {
		questions := q.next()
		assert.Len(t, questions, want)
		for _, one := range questions {
			assert.Equal(t, "a", one.key)
		}
	}
	assert.Zero(t, q.senders, "the sender has ended")
	assert.Nil(t, q.waiting)
}
