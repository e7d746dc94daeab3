// Package rulefile reads the rule file of weir. The file says on which addresses weir listens, to which upstreams it
// passes requests, and how many requests a key may make.
//
// [Load] reads a file, and [Parse] parses its text. Both return a [File] in which everything is converted and checked,
// so a server need not expect bad values. If the file has mistakes, Load and Parse return [yamlfile.Errors]. This error
// has all mistakes in order, each with its line and column, and with a suggestion if a similar word was probably meant.
// [Diff] reports what changes between two files, and which limiters continue.
//
// docs/configuration.md describes every key. The fields of [File] have the same names as the keys.
package rulefile
