package number

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestComma(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567",
		math.MaxUint64: "18,446,744,073,709,551,615"} {
		assert.Equal(t, want, Comma(n))
	}
}
