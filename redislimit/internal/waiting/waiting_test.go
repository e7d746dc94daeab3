package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNext(t *testing.T) {
	var dropped []int
	next := func(waiting ...int) (call, rest []int) {
		dropped = nil
		return Next(waiting, 3, func(n int) int { return max(1, n-9) }, func(n int) bool { return n < 0 }, func(n int) bool { return n == 0 }, func(n int) { dropped = append(dropped, n) })
	}
	call, rest := next(1, 2, 3)
	assert.Equal(t, []int{1, 2, 3}, call)
	assert.Empty(t, rest)
	call, rest = next(-2, 0, -4, 1, 0, 3, 0)
	assert.Equal(t, []int{1, 3}, call)
	assert.Equal(t, []int{-2, 0, -4, 0, 0}, dropped)
	assert.Empty(t, rest)
	call, rest = next(1, 0, 2, 4, 0, 5, 6)
	assert.Equal(t, []int{4, 5, 6}, call, "the newest, in their order")
	assert.Equal(t, []int{1, 0, 2}, rest)
	call, rest = next(1, 2, 11, 5)
	assert.Equal(t, []int{11, 5}, call, "one that is as large as two")
	assert.Equal(t, []int{1, 2}, rest)
	call, rest = next(1, 2, 99)
	assert.Equal(t, []int{99}, call, "one that is larger than a call")
	assert.Equal(t, []int{1, 2}, rest)
	call, rest = next(-1, -2)
	assert.Equal(t, []int{-1, -2}, dropped)
	assert.Empty(t, append(call, rest...))
	call, rest = next()
	assert.Empty(t, append(call, rest...))
}

func TestTrip(t *testing.T) {
	const timeout = 50 * time.Millisecond
	var trip Trip
	assert.False(t, trip.IsTooLate(int64(timeout), timeout), "nothing is known yet")
	trip.Note(int64(10 * time.Millisecond))
	assert.False(t, trip.IsTooLate(int64(40*time.Millisecond), timeout))
	assert.True(t, trip.IsTooLate(int64(40*time.Millisecond+1), timeout))
	for range 100 {
		trip.Note(int64(time.Second))
	}
	assert.False(t, trip.IsTooLate(int64(25*time.Millisecond), timeout), "a slow store is asked still")
	assert.True(t, trip.IsTooLate(int64(25*time.Millisecond+1), timeout))
}
