// Package rulefile reads the rule file of weir. The file has the addresses on which weir listens, the upstreams to
// which it passes requests, and how many requests a key may make.
//
// [Load] reads a file, and [Parse] parses its text. The returned [File] is converted and checked, so a server need not
// expect invalid values.
//
// If the file has mistakes, the error is a [yamlfile.Errors]. It has all mistakes in order, with line and column, and
// with a suggestion for a misspelled word. [Diff] reports what changes between two files, and which limiters continue.
//
// docs/configuration.md describes every key. The fields of [File] have the names of the keys.
package rulefile
