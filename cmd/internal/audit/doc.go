// Package audit finds out from outside what limit a server has: it sends requests in patterns, fits every kind of limit
// to what was decided (package fit), and asks in other ways what has a bucket of its own.
package audit
