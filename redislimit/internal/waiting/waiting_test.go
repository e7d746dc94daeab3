package waiting

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNext(t *testing.T) {
	var dropped []int
	isNewest := true
	next := func(waiting ...int) (call, rest []int) {
		dropped = nil
		return Next(waiting, 3, isNewest, func(n int) int { return max(1, n-9) }, func(n int) bool { return n < 0 }, func(n int) bool { return n == 0 }, func(n int) { dropped = append(dropped, n) })
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
	isNewest = false
	call, rest = next(-1, 1, 0, 2, 4, 0, 5, 6)
	assert.Equal(t, []int{1, 2, 4}, call, "the oldest")
	assert.Equal(t, []int{-1, 0}, dropped[:2])
	assert.Equal(t, []int{5, 6}, rest)
	call, rest = next(1, 2, 11, 5)
	assert.Equal(t, []int{1, 2}, call)
	assert.Equal(t, []int{11, 5}, rest)
	call, rest = next(99, 1)
	assert.Equal(t, []int{99}, call)
	assert.Equal(t, []int{1}, rest)
}
