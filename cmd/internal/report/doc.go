// Package report writes a report of what rules would have done to the requests of a log. It is one HTML page of charts
// with tables of their numbers, in light or dark colors, also for phones. The page needs no network and no script.
package report
