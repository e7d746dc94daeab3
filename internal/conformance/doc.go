// Package conformance holds what every front of weir has to do with a limit, as cases that run against each of them.
//
// A [Case] says what a user expects, in neutral terms: limits, requests, a clock, a reload. A [Front] puts those terms
// into the words of one front and runs it for real. [Run] runs all cases against a front and compares the outcome with
// known.txt, which lists what a front cannot do because of its protocol and what it does not do yet. A new failure
// fails the test, and so does a listed case that passes. [Page] prints docs/conformance.md from the cases and the list.
//
// To take a case off the list, delete its line and write the page again. To add a front, add its name to [Fronts] and
// write a test in its module that calls [Run].
package conformance
