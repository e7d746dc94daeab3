// Package rulefile reads the rule file of weir: the addresses on which weir listens, the upstreams to which it passes
// requests, and how many requests a key may make.
//
// [Load] reads a file, and [Parse] parses its text. Both return a converted and checked [File], so a server need not
// expect bad values. The error for mistakes, [yamlfile.Errors], has all of them in order, each with line, column and,
// for a misspelled word, a suggestion. [Diff] reports what changes between two files, and which limiters continue.
//
// docs/configuration.md describes every key. The fields of [File] have the names of the keys.
package rulefile
