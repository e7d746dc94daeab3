// Package report writes a report of what rules would have done to a log, as one HTML page: charts with tables of their
// numbers, in light or dark colors, also for phones. The page needs no network and no script.
package report
