// Package conformance has the cases that every front of weir must pass. A case says how a limit must behave.
//
// A [Case] says what a user expects, in terms that do not depend on the front: limits, requests, a clock, a reload. A
// [Front] translates these terms for one front, and actually runs the case. [Run] runs all cases against a front and
// compares the outcome with known.txt. This list has what a front cannot do because of its protocol, or does not do
// yet. The test fails if a case that is not in the list fails, or if a case that is in the list passes. [Page] makes
// docs/conformance.md from the cases and the list.
//
// To remove a case from the list, delete its line and write the page again. To add a front, add its name to [Fronts],
// and write a test in its module that calls [Run].
package conformance
