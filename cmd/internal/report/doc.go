// Package report writes what rules would have done to a log as one HTML page: charts with their
// numbers in tables beside, light or dark, readable on a phone. It needs no network and no script.
package report
