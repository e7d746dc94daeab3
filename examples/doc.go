// Package examples has a folder for each example, listed in README.md. The tests of this package run the examples that
// are scripts.
package examples
