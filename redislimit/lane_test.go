package redislimit

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// What nobody waits for any more is not asked: its token would be charged for nobody.
func TestQuestionsThatAreGivenUpAreNotAsked(t *testing.T) {
	var givenUp atomic.Bool
	givenUp.Store(true)
	l := lane{senders: 1}
	for i := range 3 * batch {
		q := question{answered: func(script.Answer, error) {}, key: string(rune('a' + i%2))}
		if i%2 == 1 {
			q.givenUp = &givenUp
		}
		l.queue = append(l.queue, q)
	}
	for _, want := range []int{batch, batch / 2, 0} {
		questions := l.next()
		assert.Len(t, questions, want)
		for _, q := range questions {
			assert.Equal(t, "a", q.key)
		}
	}
	assert.Zero(t, l.senders, "the sender has ended")
	assert.Nil(t, l.queue)
}
