package audit

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit/fit"
)

// A Way is another way to send the same request, which may have its own bucket.
type Way struct {
	Name string `json:"name"`
	Kind string `json:"what"` // address, header, path, method, host, protocol or IPv6
	// Field is the name of the header field, for a header.
	Field   string `json:"-"`
	request Request

	// Passes says that this variant was admitted while the plain request was refused. Refused says that this variant
	// was refused, too. Both are false if the audit could not find out.
	Passes  bool `json:"passes"`
	Refused bool `json:"refused"`
	// Status is the status of the answer. SameAnswer says that the answer looks like an answer to the plain request.
	Status     int  `json:"status"`
	SameAnswer bool `json:"same_answer"`
}

const http2 = "HTTP/2"

// ways returns all ways to send a request to a server with a host name and an address.
func ways(plainRequest Request, host string, address netip.Addr) (variants []*Way) {
	add := func(kind, name string, change func(*Request)) {
		request := plainRequest
		change(&request)
		variants = append(variants, &Way{Kind: kind, Name: name, request: request})
	}
	if address.IsLoopback() && address.Is4() {
		add("address", "from 127.0.0.2", func(a *Request) { a.From = "127.0.0.2" })
	}
	for _, f := range [][2]string{{"X-Forwarded-For", "203.0.113.7"}, {"X-Real-IP", "203.0.113.7"}, {"True-Client-IP", "203.0.113.7"},
		{"CF-Connecting-IP", "203.0.113.7"}, {"X-Client-IP", "203.0.113.7"}, {"Forwarded", "for=203.0.113.7"}, {"X-API-Key", "weir-audit"},
		{"Authorization", "Bearer weir-audit"}, {"Cookie", "session=weir-audit"}, {"X-HTTP-Method-Override", "DELETE"}} {
		add("header", f[0]+": "+f[1], func(a *Request) { a.Fields = append(a.Fields[:len(a.Fields):len(a.Fields)], f) })
		variants[len(variants)-1].Field = f[0]
	}
	path, query, _ := strings.Cut(plainRequest.Target, "?")
	if query != "" {
		query = "?" + query
	}
	for _, p := range spellings(path) {
		add("path", p, func(a *Request) { a.Target = p + query })
	}
	add("path", plainRequest.Target+" with another query", func(a *Request) { a.Target = path + "?weir-audit=1" })
	add("path", "/weir-audit-no-such-path", func(a *Request) { a.Target = "/weir-audit-no-such-path" })
	for _, m := range []string{http.MethodHead, http.MethodOptions, http.MethodPost, "get"} {
		if m != plainRequest.Method {
			add("method", m, func(a *Request) { a.Method = m })
		}
	}
	name, _, _ := strings.Cut(host, ":")
	for _, h := range []string{"weir-audit.invalid", strings.ToUpper(host), name + "."} {
		if h != host && h != name {
			add("host", h, func(a *Request) { a.Host = h })
		}
	}
	add("protocol", "HTTP/1.0", func(a *Request) { a.Proto = "HTTP/1.0" })
	add("protocol", http2, func(a *Request) { a.Proto = http2 })
	add("protocol", "Upgrade: websocket", func(a *Request) {
		a.Fields = append(a.Fields[:len(a.Fields):len(a.Fields)], [2]string{"Connection", "Upgrade"}, [2]string{"Upgrade", "websocket"},
			[2]string{"Sec-WebSocket-Version", "13"}, [2]string{"Sec-WebSocket-Key", "d2Vpci1hdWRpdC13ZWlyIQ=="})
	})
	add("protocol", "three in one packet", func(a *Request) { a.Times = 3 })
	return variants
}

// spellings returns other ways to write a path, which some servers treat as the same path.
func spellings(path string) []string {
	paths := []string{"/" + path, "/." + path, "/%2e" + path, path + ";weir", path + "%20", path + "%3fweir", path + "%23weir",
		path + "%00"}
	if path == "/" {
		return append(paths, "/index.html")
	}
	escaped := path[:len(path)-1] + "%" + strings.ToUpper(hexOf(path[len(path)-1]))
	paths = append(paths, path+"/", path+"//", escaped, path+".json", path+"%2f")
	if upper := strings.ToUpper(path); upper != path {
		paths = append(paths, upper)
	}
	return paths
}

func hexOf(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

// reasonNotToTry returns why the audit does not try other ways to send the request, or "". The audit tries another way
// at once after a refusal of the plain request. If the other way passes, it has its own bucket, or a token has come
// back in between. So the audit must know that a token takes long to come back.
func (a *auditor) reasonNotToTry(r *Report, result fit.Result) string {
	token := time.Duration(float64(result.Limit.Per) / float64(max(result.Limit.Tokens, 1)))
	switch {
	case len(r.Undecided) > 0:
		return "the limit is undecided"
	case result.Limit.Queued > 0:
		return "requests wait instead of being refused"
	case result.Returned && token < 4*a.refusalTime():
		return "tokens come back faster than four refusals take"
	}
	return ""
}

// tryWays tries each way to send a request while the plain request is refused. It reports whether it has tried all
// ways.
func (a *auditor) tryWays(ctx context.Context, ways []*Way) bool {
	for i, w := range ways {
		a.progress("other ways to ask")
		if a.requestsLeft() < 12 || a.err != nil {
			return false
		}
		for range 3 {
			if a.tryWay(ctx, ways[i]) {
				break
			}
		}
		if w.Passes { // try once more, because a token may just have come back
			w.Passes = false
			for range 3 {
				if a.tryWay(ctx, w) {
					break
				}
			}
		}
	}
	return true
}

// tryWay tries one way to send a request. It reports whether the result is certain.
func (a *auditor) tryWay(ctx context.Context, w *Way) bool {
	if !a.drain(ctx, 8) {
		return false
	}
	answer, err := a.do(ctx, w.request)
	if err != nil {
		return false
	}
	stillRefused, ok := a.ask(ctx)
	refused := a.isRefusal(answer.Status)
	if w.request.Times > 1 {
		refused = answer.Refused > 0 // if these requests share the bucket, at most one of them passes
	}
	if w.Status = answer.Status; refused {
		w.Refused, w.Passes = true, false
		return true
	}
	w.SameAnswer = answer.Status == a.baseline.status && (answer.Length == a.baseline.length || w.request.Method == http.MethodHead)
	w.Passes = ok && stillRefused
	return w.Passes
}
