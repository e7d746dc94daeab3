// Package limit has the flags of every command that takes a limit. Package limits/spec checks which of them fit
// together.
package limit
