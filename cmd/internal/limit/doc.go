// Package limit has the flags of every command that takes a limit. Package limits/spec checks which of these flags can
// be combined.
package limit
