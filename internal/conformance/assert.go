package conformance

import (
	"reflect"
)

// Equal expects that two values are equal.
func (c *C) Equal(want, got any, label string) {
	if !reflect.DeepEqual(want, got) {
		c.Fatalf("%s: want %v, got %v", label, want, got)
	}
}

// AtMost expects that a number is not above another.
func (c *C) AtMost(maximum, got int, label string) {
	if got > maximum {
		c.Fatalf("%s: want %d at most, got %d", label, maximum, got)
	}
}

// AtLeast expects that a number is not below another.
func (c *C) AtLeast(minimum, got int, label string) {
	if got < minimum {
		c.Fatalf("%s: want %d at least, got %d", label, minimum, got)
	}
}
