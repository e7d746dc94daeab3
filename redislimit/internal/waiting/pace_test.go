package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/redislimit/internal/defaults"
	"github.com/weir-go/weir/redislimit/internal/script"
)

const (
	ms      = int64(time.Millisecond)
	timeout = 50 * time.Millisecond
)

func TestHowMuchIsUnderWay(t *testing.T) {
	var p Pace
	for i := range defaults.MaxCalls {
		assert.True(t, p.MayBegin(false), i)
		p.Begin()
		p.Send(1)
	}
	assert.False(t, p.MayBegin(false), "eight calls that are not full")
	for p.MayBegin(true) {
		p.Begin()
		p.Send(script.Full)
	}
	assert.Equal(t, defaults.MaxCalls+firstWindow, p.size)
	assert.False(t, p.Continues())
	for range p.calls - 1 {
		p.End()
	}
	assert.True(t, p.Continues(), "the last one, whatever the window")
}

// With a store of a fixed speed, the calls in progress grow only until answers take longer.
func TestTheWindowFitsTheStore(t *testing.T) {
	for _, trip := range []int64{ms, 40 * ms} {
		var p Pace
		const speed = 64
		now, most := int64(time.Hour), 0
		for range 3000 {
			window := p.Window()
			took := max(trip, int64(window/speed)*ms)
			now += took
			for range window / script.Full {
				p.Send(script.Full)
				p.Answered(now-took, now, script.Full, timeout, true)
			}
			most = max(most, window)
		}
		longest := trip + int64(timeout)/8
		assert.GreaterOrEqual(t, p.Window(), speed*int(trip/ms)/2, "it is used")
		assert.LessOrEqual(t, most, 2*max(firstWindow, speed*int(longest/ms)), "%v", trip)
	}
}

func TestLateAnswersMakeTheWindowSmall(t *testing.T) {
	var p Pace
	now := int64(time.Hour)
	p.Begin()
	for i, want := range []int{firstWindow / 2, firstWindow / 4, firstWindow / 8} {
		for range 5 {
			p.Send(script.Full)
			p.Failed(now, now+45*ms, script.Full, true)
		}
		assert.Equal(t, want, p.Window(), i)
		now += 45 * ms
	}
	p.Send(1)
	p.Failed(now, now, 1, false)
	assert.Equal(t, firstWindow/8, p.Window(), "an error says nothing about how much is under way")
	for range 20 {
		now += 45 * ms
		p.Send(1)
		p.Failed(now-45*ms, now, 1, true)
	}
	assert.Equal(t, 1, p.Window())
	p.Send(1)
	p.Answered(now, now+ms, 1, timeout, true)
	assert.Equal(t, 2, p.Window())
	p.End()
	assert.Equal(t, firstWindow, p.Window(), "nothing is under way")
}

func TestHowLongQuestionsWait(t *testing.T) {
	var p Pace
	now := int64(time.Hour)
	p.Empty(now)
	turn := p.Turn(now+20*ms, 20*ms, timeout, false)
	assert.False(t, turn.IsNewest)
	assert.False(t, turn.IsTooLate(burstTime))
	assert.True(t, turn.IsTooLate(burstTime+1), "nothing waits for longer")
	for i := range 4 {
		turn = p.Turn(now+burstTime+1, 26*ms, timeout, false)
		assert.Equal(t, i%2 == 0, turn.IsNewest, "by turns where more is asked than is answered")
	}
	assert.False(t, turn.IsTooLate(int64(timeout)), "and no trip is known")
	p.Answered(now, now+10*ms, 0, timeout, false)
	turn = p.Turn(now+burstTime+1, 0, timeout, false)
	assert.False(t, turn.IsTooLate(40*ms))
	assert.True(t, turn.IsTooLate(40*ms+1), "an answer takes 10 ms")
	for range 100 {
		p.Answered(now, now+int64(time.Second), 0, timeout, false)
	}
	turn = p.Turn(now+burstTime+1, 0, timeout, false)
	assert.False(t, turn.IsTooLate(25*ms), "a slow store is asked still")
	assert.True(t, turn.IsTooLate(25*ms+1))
	p.Empty(now + burstTime + 1)
	turn = p.Turn(now+burstTime+1, 0, timeout, true)
	assert.True(t, turn.IsTooLate(25*ms+1), "a store that answers nothing, burst or not")
}
