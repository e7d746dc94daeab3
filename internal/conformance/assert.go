package conformance

import (
	"reflect"
)

// Equal expects that two values are equal.
func (c *C) Equal(want, got any, what string) {
	if !reflect.DeepEqual(want, got) {
		c.Fatalf("%s: want %v, got %v", what, want, got)
	}
}

// AtMost expects that a number is not above another.
func (c *C) AtMost(most, got int, what string) {
	if got > most {
		c.Fatalf("%s: want %d at most, got %d", what, most, got)
	}
}

// AtLeast expects that a number is not below another.
func (c *C) AtLeast(least, got int, what string) {
	if got < least {
		c.Fatalf("%s: want %d at least, got %d", what, least, got)
	}
}
