package serve

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// A cors lets pages of other origins read answers, including refusals. It answers preflights (requests by which a
// browser asks for permission), so rules do not count them.
type cors struct {
	rulefile.CORS
	methods, headers, expose, maxAge string
}

func newCORS(f *rulefile.File) *cors {
	if f.CORS == nil {
		return nil
	}
	return &cors{
		CORS: *f.CORS, methods: strings.Join(f.CORS.Methods, ", "), headers: strings.Join(f.CORS.Headers, ", "),
		expose: strings.Join(slices.Concat([]string{"Retry-After"}, styles[f.Headers].Fields(), f.CORS.Expose), ", "),
		maxAge: strconv.FormatInt(int64(f.CORS.MaxAge/time.Second), 10),
	}
}

// isPreflight reports whether a request is answered as a preflight. The cors may be nil.
func (c *cors) isPreflight(r *http.Request) bool {
	origins := r.Header["Origin"]
	return c != nil && r.Method == http.MethodOptions && len(origins) == 1 && origins[0] != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// answer sets the CORS fields of an answer. It answers a preflight completely, and then returns true.
func (c *cors) answer(w http.ResponseWriter, r *http.Request) bool {
	if c == nil {
		return false
	}
	h := w.Header()
	if !c.AnyOrigin() {
		h["Vary"] = []string{"Origin"}
	}
	var origin string
	if origins := r.Header["Origin"]; len(origins) == 1 {
		origin = origins[0]
	}
	isPreflight := c.isPreflight(r)
	if origin != "" && c.Allows(origin) {
		if c.AnyOrigin() {
			origin = "*"
		}
		h["Access-Control-Allow-Origin"] = []string{origin}
		if c.Credentials {
			h["Access-Control-Allow-Credentials"] = []string{"true"}
		}
		if !isPreflight {
			h["Access-Control-Expose-Headers"] = []string{c.expose}
		} else {
			c.allow(h, r)
		}
	}
	if isPreflight {
		if x := exchangeOf(r); x != nil {
			x.answeredBy = byWeir
		}
		w.WriteHeader(http.StatusNoContent)
	}
	return isPreflight
}

func (c *cors) allow(h http.Header, r *http.Request) {
	h["Access-Control-Allow-Methods"] = []string{c.methods}
	h["Access-Control-Max-Age"] = []string{c.maxAge}
	if c.Headers != nil {
		h["Access-Control-Allow-Headers"] = []string{c.headers}
	} else if names := r.Header["Access-Control-Request-Headers"]; names != nil {
		h["Access-Control-Allow-Headers"] = names
		h.Add("Vary", "Access-Control-Request-Headers")
	}
}
