package serve

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/httplimit/reading"
	"github.com/weir-go/weir/internal/spelling"
)

// checkTarget returns an error if rules cannot be applied to the method or the target of a request (RFC 9112, section
// 3).
//
// net/http parses "http:http://a/login" as a URL without a path. No pattern would match this URL, but an upstream could
// find a path in it. Over HTTP/2, net/http accepts any text as a method. For an invalid method, the transport would
// return an error that counts as a failure of the upstream.
func checkTarget(r *http.Request) error {
	u := r.URL
	if !httpguts.ValidHeaderFieldName(r.Method) { // a method may have the characters of a header's name
		return fmt.Errorf("its method %q is not valid", r.Method)
	}
	if err := checkHost(r.Host); err != nil {
		return err
	}
	switch {
	case strings.Contains(r.RequestURI, "#"):
		return errors.New("its target has a fragment, which only some servers remove")
	case u.Opaque != "":
		return errors.New("its target has no path")
	case u.Path == "" && u.Host != "": // http://a means http://a/
		return nil
	case u.Path == "*" && r.Method == http.MethodOptions:
		return nil
	case u.Path == "" || u.Path[0] != '/':
		return errors.New("the path of its target does not begin with a slash")
	case reading.Climbs(u):
		return errors.New("the path of its target goes above its root, at least to some servers")
	case endsInBlank(r.RequestURI):
		return errors.New("its target ends in a byte that some servers treat as a blank")
	}
	return nil
}

// endsInBlank reports whether a target ends in the byte 85 or A0 outside of a UTF-8 character. Python's http.server
// treats these bytes as blanks, and reads only the text before them. In a query, [reading.QueryKey] ignores them.
func endsInBlank(target string) bool {
	last, size := utf8.DecodeLastRuneInString(target)
	return last == utf8.RuneError && size == 1 && spelling.TrimBlanks(target) != target && !strings.Contains(target, "?")
}

// checkHost returns an error unless the host is empty, a name, or [address]. A port may follow. Servers read other
// texts in different ways. For example, nginx reads "a.example:80:80" as a.example, but no rule has the complete text
// as a name.
func checkHost(host string) error {
	const longest = 255 + len(":65535") // RFC 1035, section 2.3.4
	if len(host) > longest {
		return fmt.Errorf("the host %.40q... has %d bytes, and names have at most 255", host, len(host))
	}
	name, port := host, ""
	if end := strings.LastIndexByte(host, ']'); end > 0 && host[0] == '[' {
		addr, err := netip.ParseAddr(host[1:end])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return fmt.Errorf("the host %q is neither a name nor an address", host)
		}
		name, port = "", strings.TrimPrefix(host[end+1:], ":")
		if port == host[end+1:] && port != "" {
			return fmt.Errorf("the host %q has something other than a port after it", host)
		}
	} else {
		name, port, _ = strings.Cut(host, ":")
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return fmt.Errorf("the host %q has something other than a port after it", host)
		}
	}
	for i := range len(name) {
		if !hostBytes[name[i]] || name[i] == '.' && (i == 0 || name[i-1] == '.') {
			return fmt.Errorf("the host %q is neither a name nor an address", host)
		}
	}
	return nil
}

var hostBytes = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") {
		set[c] = true
	}
	return set
}()
