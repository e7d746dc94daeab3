// Package chart draws static charts as SVG: rows of bars, and plots with two axes. A chart stands in an HTML page, as
// wide as its column, or in a file of its own. It takes no script and no network, and a few kilobytes.
//
// Colours are variables of one style sheet, Style, which a page includes once and a Picture carries with it. They
// follow the reader's preference for light or dark.
//
// It is on the standard library because no kept library fits: go-chart and gonum/plot draw for a fixed width and
// measure text with font and raster packages; margaid draws plots of a fixed width in colours that it computes;
// go-echarts writes JavaScript; svgo writes elements, which is the smaller part of this.
//
// A chart is one image to a screen reader, with a label that says what it shows. The numbers themselves belong
// in a table beside it.
//
//	chart.go    a Chart, what Rows and Plot make; colours and legends
//	rows.go     bars that lie, one below the other
//	plot.go     lines, columns and marks in a field with two axes
//	axis.go     the axes: where a number stands, and which numbers are written
//	picture.go  a chart as a file
//	style.css   the colours, and how the parts of a chart look; page.css is for pages only
package chart
