// Package examples has a folder for each example. README.md lists them. The tests of this package run the examples that
// are scripts.
package examples
