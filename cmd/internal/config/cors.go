package config

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/weir-go/weir/cmd/internal/yamlfile"
)

// CORS says which pages of other origins may read answers (Cross-Origin Resource Sharing, of the Fetch standard).
type CORS struct {
	Origins     []string // in lower case: "https://app.example.com", "https://*.example.com", or "*" alone for all
	Methods     []string // of requests that need a preflight
	Headers     []string // that such requests may have, in canonical form; nil for any
	Expose      []string // of answers, that pages may read beside those of limits
	Credentials bool     // cookies and HTTP authentication
	MaxAge      time.Duration
}

// AnyOrigin reports whether all origins are allowed.
func (c *CORS) AnyOrigin() bool { return c.Origins[0] == "*" }

// Allows reports whether an origin is allowed.
func (c *CORS) Allows(origin string) bool {
	origin = strings.ToLower(origin)
	return c.AnyOrigin() || slices.ContainsFunc(c.Origins, func(want string) bool {
		scheme, below, ok := strings.Cut(want, "*")
		return want == origin || ok && len(origin) > len(scheme)+len(below) && strings.HasPrefix(origin, scheme) &&
			strings.HasSuffix(origin, below) && !strings.ContainsAny(origin[len(scheme):len(origin)-len(below)], "/:@")
	})
}

const corsMaxAge = 10 * time.Minute

func (d *decoder) cors(n *yaml.Node) *CORS {
	c := CORS{Methods: []string{http.MethodGet, http.MethodHead, http.MethodPost}, MaxAge: corsMaxAge}
	header := func(name string, into *[]string) field {
		return field{name, func(n *yaml.Node) {
			d.list(n, name, func(n *yaml.Node) {
				s, ok := d.text(n, name)
				if ok && !httpguts.ValidHeaderFieldName(s) {
					d.Fail(n, "%s: %s is not the name of an HTTP header; write for example X-Request-Id", name, yamlfile.Quote(s))
				}
				*into = append(*into, http.CanonicalHeaderKey(s))
			})
		}}
	}
	seen := d.mapping(n, "cors",
		field{"origins", func(n *yaml.Node) {
			d.list(n, "origins", func(n *yaml.Node) { c.Origins = append(c.Origins, d.origin(n)) })
		}},
		field{"methods", func(n *yaml.Node) {
			c.Methods = nil
			d.list(n, "methods", func(n *yaml.Node) { c.Methods = append(c.Methods, d.method(n)) })
		}},
		header("headers", &c.Headers), header("expose", &c.Expose),
		d.yesField("credentials", &c.Credentials),
		d.durationField("max_age", 0, 24*time.Hour, &c.MaxAge))
	switch {
	case seen == nil:
		return nil
	case seen["origins"] == nil:
		d.Fail(n, "cors: no origins: write for example origins: https://app.example.com")
		return nil
	case len(c.Origins) > 1 && slices.Contains(c.Origins, "*"):
		d.Fail(seen["origins"], "origins: * is all origins: leave the others out")
	case c.Credentials && slices.Contains(c.Origins, "*"):
		d.Fail(seen["origins"], "origins: with credentials every page on the web could act as your user: write the origins")
	case c.MaxAge%time.Second != 0:
		d.Fail(seen["max_age"], "max_age: want whole seconds, got %v", c.MaxAge)
	}
	return &c
}

// origin reads an origin as browsers write it.
func (d *decoder) origin(n *yaml.Node) string {
	s, ok := d.text(n, "origins")
	if !ok || s == "*" {
		return s
	}
	u, err := url.Parse(strings.Replace(s, "://*.", "://any.", 1))
	bad := err != nil || u.Scheme == "" || u.Hostname() == "" || strings.Contains(u.Host, "*") ||
		*u != url.URL{Scheme: u.Scheme, Host: u.Host}
	if !bad {
		_, err := netip.ParseAddr(u.Hostname())
		bad = err == nil && u.Host != s[strings.Index(s, "://")+3:] ||
			u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80"
	}
	if bad {
		d.Fail(n, "origins: %s: want scheme and host as browsers send them, such as https://app.example.com, without a path "+
			"and without the scheme's own port; https://*.example.com for all below it; or *", yamlfile.Quote(s))
	}
	return strings.ToLower(s)
}
