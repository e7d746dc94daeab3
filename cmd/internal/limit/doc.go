// Package limit has the flags of every command that takes a limit. Package limits/spec checks how they combine.
package limit
