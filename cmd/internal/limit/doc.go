// Package limit is how people write a limit: the flags of every command that takes one, and the numbers of a rule
// file, which come to the same engine.Policy.
package limit
