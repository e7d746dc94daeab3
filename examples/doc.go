// Package examples has a folder for each example: README.md lists them. The tests here run those that are scripts.
package examples
