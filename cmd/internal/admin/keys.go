package admin

import (
	"fmt"
	"slices"
)

// Keys says how keys are shown.
type Keys string

const (
	KeysHashed Keys = "hashed" // the default
	KeysFull   Keys = "full"
	KeysOff    Keys = "off" // not at all: no keys are stored
)

// AllKeys has all values, the default first.
var AllKeys = []Keys{KeysHashed, KeysFull, KeysOff}

// check replaces "" by the default, and returns an error for a text that is not in AllKeys.
func (k *Keys) check() error {
	if *k == "" {
		*k = KeysHashed
	}
	if !slices.Contains(AllKeys, *k) {
		return fmt.Errorf("admin: Config.Keys %q: want %s, %s or %s", *k, KeysFull, KeysHashed, KeysOff)
	}
	return nil
}
