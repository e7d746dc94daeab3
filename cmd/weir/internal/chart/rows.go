package chart

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// A Row is a bar that lies, with its name above its beginning and a text above its end.
type Row struct {
	Name, Text string
	Bar
}

// RowHeight is how high a row is drawn, in pixels.
const RowHeight = 40

// Rows draws bars one below the other, the part at the left in the colour of the class "part" and the rest in that of
// "rest"; names are of the class "name" and texts of "value". It is as wide as its column, and what is written
// keeps its size: there is room for 30 letters of a name on a phone. The longest bar ends at the right.
func Rows(sentence string, rows []Row) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="rows" width="100%%" height="%d" role="img" aria-label="%s">`, len(rows)*RowHeight, html.EscapeString(sentence))
	longest := uint64(1)
	for _, r := range rows {
		longest = max(longest, r.All)
	}
	for i, r := range rows {
		top := i * RowHeight
		fmt.Fprintf(&b, `<text class="name" x="0" y="%d">%s</text><text class="value" x="100%%" y="%d" text-anchor="end">%s</text>`,
			top+14, html.EscapeString(r.Name), top+14, html.EscapeString(r.Text))
		part, all := 100*float64(r.Part)/float64(longest), 100*float64(r.All)/float64(longest)
		lie(&b, "part", 0, part, top)
		lie(&b, "rest", part, all, top)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// lie draws from one place to another, in percent.
func lie(b *strings.Builder, class string, from, to float64, top int) {
	if to > from {
		fmt.Fprintf(b, `<rect class="%s" x="%.2f%%" y="%d" width="%.2f%%" height="12"/>`, class, from, top+20, to-from)
	}
}
