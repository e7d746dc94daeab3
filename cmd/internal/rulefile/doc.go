// Package rulefile reads the rule file of weir: what it listens on, where requests go, and how many of them a key may
// make.
//
// [Load] reads a file and [Parse] its text. Either gives a [File] with everything
// converted and checked, so that a server which has one meets no bad value in it, or
// [yamlfile.Errors]: all mistakes of the file, in order, each with its line and column and, where
// something near it was probably meant, a suggestion. [Diff] says what changes between two
// files, and which limiters may live on.
//
// docs/configuration.md describes every key. The fields of [File] have the same names.
package rulefile
