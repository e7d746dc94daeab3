// Package examples has a folder for each example. README.md lists the examples. The tests of this package run the
// examples that are scripts.
package examples
