// Package limit has the flags of every command that takes a limit. Package limits/spec knows which of them fit
// together.
package limit
