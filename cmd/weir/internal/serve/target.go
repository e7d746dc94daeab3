package serve

import (
	"errors"
	"net/http"
)

// checkTarget returns an error if the target of a request is none that rules can be held against (RFC 9112, section
// 3.2). net/http takes "http:http://a/login" for a URL with an opaque part and without a path: no pattern would match
// it, and an upstream could read a path in it.
func checkTarget(r *http.Request) error {
	u := r.URL
	switch {
	case u.Opaque != "":
		return errors.New("its target has no path")
	case u.Path == "" && u.Host != "": // http://a, which is http://a/
		return nil
	case u.Path == "*" && r.Method == http.MethodOptions:
		return nil
	case u.Path == "" || u.Path[0] != '/':
		return errors.New("the path of its target does not begin with a slash")
	}
	return nil
}
