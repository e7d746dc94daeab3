// Package rulefile reads the rule file of weir: what it listens on, where requests go, and how many of them a key may
// make.
//
// [Load] reads a file and [Parse] its text. Both return a [File] in which everything is converted and checked, so that
// a server meets no bad value in it. If the file has mistakes, they return [yamlfile.Errors]: all mistakes, in order,
// each with its line and column, and with a suggestion if a similar word was probably meant. [Diff] says what changes
// between two files, and which limiters may continue.
//
// docs/configuration.md describes every key. The fields of [File] have the same names.
package rulefile
