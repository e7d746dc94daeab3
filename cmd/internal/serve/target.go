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

// checkTarget returns an error if the method or the target of a request is none that rules can be held against (RFC
// 9112, section 3). net/http takes "http:http://a/login" for a URL with an opaque part and without a path: no pattern
// would match it, and an upstream could read a path in it. Over HTTP/2 it takes any text for a method; the transport
// would return an error, for which the upstream is not to blame.
func checkTarget(r *http.Request) error {
	u := r.URL
	if !httpguts.ValidHeaderFieldName(r.Method) { // the same characters
		return fmt.Errorf("its method %q is none", r.Method)
	}
	if err := checkHost(r.Host); err != nil {
		return err
	}
	switch {
	case strings.Contains(r.RequestURI, "#"):
		return errors.New("its target has a fragment, which some servers take off and some do not")
	case u.Opaque != "":
		return errors.New("its target has no path")
	case u.Path == "" && u.Host != "": // http://a, which is http://a/
		return nil
	case u.Path == "*" && r.Method == http.MethodOptions:
		return nil
	case u.Path == "" || u.Path[0] != '/':
		return errors.New("the path of its target does not begin with a slash")
	case reading.Climbs(u):
		return errors.New("the path of its target goes above its root, at least to some servers")
	case endsInBlank(r.RequestURI):
		return errors.New("its target ends in a byte that some servers take for a blank")
	}
	return nil
}

// endsInBlank reports whether the last byte of a target is 85 or A0 and not the end of a character in UTF-8. Python's
// http.server takes both for blanks and asks for what is before them. Those in a query are no matter:
// [reading.QueryKey] passes over them.
func endsInBlank(target string) bool {
	last, size := utf8.DecodeLastRuneInString(target)
	return last == utf8.RuneError && size == 1 && spelling.TrimBlanks(target) != target && !strings.Contains(target, "?")
}

// checkHost returns an error if a host is neither empty, nor a name or [address], with or without a port. Servers read
// others in several ways: "a.example:80:80" is a.example to nginx, and no name that a rule has.
func checkHost(host string) error {
	const longest = 255 + len(":65535") // RFC 1035, section 2.3.4
	if len(host) > longest {
		return fmt.Errorf("the host %.40q... has %d bytes, and names have at most 255", host, len(host))
	}
	name, port := host, ""
	if end := strings.LastIndexByte(host, ']'); end > 0 && host[0] == '[' {
		addr, err := netip.ParseAddr(host[1:end])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return fmt.Errorf("the host %q is no name and no address", host)
		}
		name, port = "", strings.TrimPrefix(host[end+1:], ":")
		if port == host[end+1:] && port != "" {
			return fmt.Errorf("the host %q has something else than a port behind it", host)
		}
	} else {
		name, port, _ = strings.Cut(host, ":")
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return fmt.Errorf("the host %q has something else than a port behind it", host)
		}
	}
	for i := range len(name) {
		if !inNames[name[i]] || name[i] == '.' && (i == 0 || name[i-1] == '.') {
			return fmt.Errorf("the host %q is no name and no address", host)
		}
	}
	return nil
}

// inNames are the characters that names of hosts have.
var inNames = func() (in [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") {
		in[c] = true
	}
	return in
}()
