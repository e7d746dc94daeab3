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
	What string `json:"what"` // address, header, path, method, host, protocol or IPv6
	// Field is the name of the header field, for a header.
	Field string `json:"-"`
	ask   Ask

	// Passes says that this variant was admitted while the plain request was refused. Refused says that this variant
	// was refused, too. Both are false if the audit could not find out.
	Passes  bool `json:"passes"`
	Refused bool `json:"refused"`
	// Status is the status of the answer. Same says that the answer looks like an answer to the plain request.
	Status int  `json:"status"`
	Same   bool `json:"same_answer"`
}

const http2 = "HTTP/2"

// ways returns all ways to send a request to a server with a host name and an address.
func ways(plain Ask, host string, address netip.Addr) (all []*Way) {
	with := func(what, name string, change func(*Ask)) {
		ask := plain
		change(&ask)
		all = append(all, &Way{What: what, Name: name, ask: ask})
	}
	if address.IsLoopback() && address.Is4() {
		with("address", "from 127.0.0.2", func(a *Ask) { a.From = "127.0.0.2" })
	}
	for _, f := range [][2]string{{"X-Forwarded-For", "203.0.113.7"}, {"X-Real-IP", "203.0.113.7"}, {"True-Client-IP", "203.0.113.7"},
		{"CF-Connecting-IP", "203.0.113.7"}, {"X-Client-IP", "203.0.113.7"}, {"Forwarded", "for=203.0.113.7"}, {"X-API-Key", "weir-audit"},
		{"Authorization", "Bearer weir-audit"}, {"Cookie", "session=weir-audit"}, {"X-HTTP-Method-Override", "DELETE"}} {
		with("header", f[0]+": "+f[1], func(a *Ask) { a.Fields = append(a.Fields[:len(a.Fields):len(a.Fields)], f) })
		all[len(all)-1].Field = f[0]
	}
	path, query, _ := strings.Cut(plain.Target, "?")
	if query != "" {
		query = "?" + query
	}
	for _, p := range spellings(path) {
		with("path", p, func(a *Ask) { a.Target = p + query })
	}
	with("path", plain.Target+" with another query", func(a *Ask) { a.Target = path + "?weir-audit=1" })
	with("path", "/weir-audit-no-such-path", func(a *Ask) { a.Target = "/weir-audit-no-such-path" })
	for _, m := range []string{http.MethodHead, http.MethodOptions, http.MethodPost, "get"} {
		if m != plain.Method {
			with("method", m, func(a *Ask) { a.Method = m })
		}
	}
	name, _, _ := strings.Cut(host, ":")
	for _, h := range []string{"weir-audit.invalid", strings.ToUpper(host), name + "."} {
		if h != host && h != name {
			with("host", h, func(a *Ask) { a.Host = h })
		}
	}
	with("protocol", "HTTP/1.0", func(a *Ask) { a.Proto = "HTTP/1.0" })
	with("protocol", http2, func(a *Ask) { a.Proto = http2 })
	with("protocol", "Upgrade: websocket", func(a *Ask) {
		a.Fields = append(a.Fields[:len(a.Fields):len(a.Fields)], [2]string{"Connection", "Upgrade"}, [2]string{"Upgrade", "websocket"},
			[2]string{"Sec-WebSocket-Version", "13"}, [2]string{"Sec-WebSocket-Key", "d2Vpci1hdWRpdC13ZWlyIQ=="})
	})
	with("protocol", "three in one packet", func(a *Ask) { a.Times = 3 })
	return all
}

// spellings returns other ways to write a path, which some servers treat as the same path.
func spellings(path string) []string {
	all := []string{"/" + path, "/." + path, "/%2e" + path, path + ";weir", path + "%20", path + "%3fweir", path + "%23weir",
		path + "%00"}
	if path == "/" {
		return append(all, "/index.html")
	}
	escaped := path[:len(path)-1] + "%" + strings.ToUpper(hexOf(path[len(path)-1]))
	all = append(all, path+"/", path+"//", escaped, path+".json", path+"%2f")
	if upper := strings.ToUpper(path); upper != path {
		all = append(all, upper)
	}
	return all
}

func hexOf(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

// noWays returns why the audit does not try other ways to send the request, or "". The audit tries another way at once
// after a refusal of the plain request. If the other way passes, it has its own bucket, or a token has come back in
// between. So the audit must know that a token takes long to come back.
func (a *auditor) noWays(r *Report, found fit.Result) string {
	token := time.Duration(float64(found.Limit.Per) / float64(max(found.Limit.Tokens, 1)))
	switch {
	case len(r.Undecided) > 0:
		return "the limit is undecided"
	case found.Limit.Queued > 0:
		return "requests wait instead of being refused"
	case found.Returned && token < 4*a.refusal():
		return "tokens come back faster than four refusals take"
	}
	return ""
}

// tryWays tries each way to send a request while the plain request is refused. It reports whether it has tried all
// ways.
func (a *auditor) tryWays(ctx context.Context, all []*Way) bool {
	for i, w := range all {
		a.progress("other ways to ask")
		if a.room() < 12 || a.err != nil {
			return false
		}
		for range 3 {
			if a.tryWay(ctx, all[i]) {
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
	answer, err := a.do(ctx, w.ask)
	if err != nil {
		return false
	}
	after, ok := a.ask(ctx)
	refused := a.isRefusal(answer.Status)
	if w.ask.Times > 1 {
		refused = answer.Refused > 0 // if these requests share the bucket, at most one of them passes
	}
	if w.Status = answer.Status; refused {
		w.Refused, w.Passes = true, false
		return true
	}
	w.Same = answer.Status == a.usual.status && (answer.Length == a.usual.length || w.ask.Method == http.MethodHead)
	w.Passes = ok && after
	return w.Passes
}
