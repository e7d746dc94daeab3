package rulefile

import (
	"fmt"
	htmltemplate "html/template"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	texttemplate "text/template"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// A Refusal describes the answer to a refused request. The zero Refusal is the usual answer.
type Refusal struct {
	Status      int         // 0 means 429
	Header      http.Header // in addition to the fields about limits
	ContentType string      // media type of the template; "" means plain text
	Template    string      // template of the body; "" means the form of Body
}

// RefusalValues are the values for a template.
type RefusalValues struct {
	Rule       string // the rule that refuses; if several refuse, the rule with the longest wait
	Status     int
	Limit      uint64 // the limit of the rule for this client
	Remaining  uint64 // tokens that are left, fewer than the request costs
	RetryAfter int64  // in seconds; 0 if Never is true, or if a request in flight must end first
	Never      bool   // the request can never pass
}

// A Template writes the body of a refusal.
type Template interface{ Execute(io.Writer, any) error }

// Compile returns the template of the body, or nil if there is none. In HTML, each value is escaped for the place where
// it is inserted.
func (r *Refusal) Compile() (t Template, err error) {
	if r.Template == "" {
		return nil, nil
	}
	if kind, _, _ := mime.ParseMediaType(r.ContentType); kind == "text/html" {
		t, err = htmltemplate.New("template").Parse(r.Template)
	} else {
		t, err = texttemplate.New("template").Parse(r.Template)
	}
	if err != nil {
		return nil, err
	}
	for _, sample := range []RefusalValues{{Rule: "a", Limit: 1, RetryAfter: 1}, {Rule: "a", Never: true}} {
		if err := t.Execute(io.Discard, sample); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// templateName matches the beginning of an error about a template. The line follows, and sometimes the column.
var templateName = regexp.MustCompile(`^(html/)?template: ?template:? ?`)

const plainText = "text/plain; charset=utf-8"

// section returns the section for the response of a rule. The section for the response of the file has more keys.
func (r *Refusal) section() section {
	return section{
		name: "response", entries: []entry{
			newEntry("status", integer[int](400, 599), &r.Status, "", "of refusals").withDefaultText("429"),
			newEntry("headers", mapOf(text, refusalHeader), &r.Header, "",
				"a mapping of header fields that refusals get in addition to weir's own"),
			newEntry("content_type", mediaType, &r.ContentType, "",
				"the media type of the template. In `text/html`, values are escaped as their place requires").withDefaultText("`" + plainText + "`"),
			newEntry("template", text, &r.Template, "",
				"the body of refusals, instead of that of `body`: a [template of Go](https://pkg.go.dev/text/template) with .Rule, "+
					".Status, .Limit, .Remaining, .RetryAfter and .Never"),
		},
		check: r.check,
	}
}

var mediaType = scalar(schema{"type": "string"}, func(d *decoder, n *yaml.Node, keyName, s string) string {
	if _, _, err := mime.ParseMediaType(s); err != nil || !httpguts.ValidHeaderFieldValue(s) {
		d.Fail(n, "%s: %s: want a media type, such as text/html; charset=utf-8", keyName, yamlfile.Quote(s))
	}
	return s
})

func refusalHeader(d *decoder, n *yaml.Node, keyName string, dst *http.Header) {
	h := http.Header{}
	*dst = h
	d.nonEmptyPairs(n, keyName, func(key, value *yaml.Node) {
		name := http.CanonicalHeaderKey(yamlfile.Target(key).Value)
		switch s, ok := d.text(value, "headers "+name); {
		case !ok:
		case !httpguts.ValidHeaderFieldName(name):
			d.Fail(key, "headers: %s is not the name of an HTTP header; write for example Cache-Control", yamlfile.Quote(name))
		case !httpguts.ValidHeaderFieldValue(s):
			d.Fail(value, "headers %s: %s is not a valid header value", name, yamlfile.Quote(s))
		case isReservedHeader(name):
			d.Fail(key, "headers: weir writes %s itself: leave it out%s", name, textIf(name == "Content-Type", ", and set content_type"))
		case h[name] != nil:
			d.Fail(key, "headers: %s occurs twice: the case of its letters does not matter", name)
		default:
			h.Set(name, s)
		}
	})
}

// isReservedHeader reports whether weir itself writes this field in refusals.
func isReservedHeader(name string) bool {
	switch name {
	case "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Date", "Retry-After":
		return true
	}
	return strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Ratelimit-")
}

func (r *Refusal) check(d *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) {
	if r.ContentType != "" && r.Template == "" {
		d.Fail(nodes["content_type"], "content_type needs a template: write template, too")
	} else if r.Template != "" && r.ContentType == "" {
		r.ContentType = plainText
	}
	if _, err := r.Compile(); err != nil {
		message := templateName.ReplaceAllString(err.Error(), "")
		message, _, _ = strings.Cut(message, ": {") // internal state of the library
		message = strings.Replace(message, " in type rulefile.RefusalValues", ": want .Rule, .Status, .Limit, .Remaining, .RetryAfter or .Never", 1)
		d.Fail(nodes["template"], "template: %s", message)
	}
}

// RefusalOf returns the file's Refusal, except for the values that the rule's own Refusal sets.
func (f *File) RefusalOf(rule *Rule) Refusal {
	refusal := f.Response.Refusal
	override := rule.Refusal
	if override == nil {
		return refusal
	}
	if override.Status != 0 {
		refusal.Status = override.Status
	}
	if override.Header != nil {
		refusal.Header = override.Header
	}
	if override.Template != "" {
		refusal.Template, refusal.ContentType = override.Template, override.ContentType
	}
	return refusal
}

// String describes the refusal for people.
func (r Refusal) String() string {
	var parts []string
	if r.Status != 0 {
		parts = append(parts, fmt.Sprintf("status %d", r.Status))
	}
	if len(r.Header) > 0 {
		parts = append(parts, fmt.Sprintf("%d headers", len(r.Header)))
	}
	if r.Template != "" {
		parts = append(parts, "a template of "+r.ContentType)
	}
	return strings.Join(parts, ", ")
}
