// Package chart draws small charts as SVG that stands in an HTML page: bars over time, and curves
// on logarithmic axes. Colours are CSS classes and variables of the page, so that it can be light
// or dark. Numbers that somebody may want to read stand in a table beside: a chart is marked as an
// image with a sentence that says what it shows.
package chart
