// Package chart draws static charts as SVG: rows of bars, and plots with two axes. A chart is a part of an HTML page,
// where it is as wide as its column, or a separate file. A chart needs no script and no network, and takes a few
// kilobytes.
//
// Colours are variables of one style sheet ([Style]). A page includes this style sheet once, and a Picture contains it.
// The colors follow the reader's preference for light or dark.
//
// No maintained library fits, so the package uses only the standard library. go-chart and gonum/plot draw for a fixed
// width and measure text with font and raster packages. margaid draws plots of a fixed width in colors that it
// computes. go-echarts writes JavaScript. svgo only writes elements, which is the smaller part of the work.
//
// For a screen reader, a chart is one image, with a label that says what the chart shows. Put the numbers themselves
// into a table next to the chart.
//
//	chart.go    a Chart, what Rows and Plot make; colours and legends
//	rows.go     horizontal bars, one below the other
//	plot.go     lines, columns and marks in a field with two axes
//	axis.go     the axes: the position of a number, and the numbers that are written
//	picture.go  a chart as a file
//	style.css   the colours, and how the parts of a chart look; page.css is for pages only
package chart
