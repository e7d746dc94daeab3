package rulefile

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

// CORS (Cross-Origin Resource Sharing, in the Fetch standard) says which pages of other origins may read answers.
type CORS struct {
	Origins     []string // in lower case: "https://app.example.com", "https://*.example.com", or "*" alone for all
	Methods     []string // methods of requests that need a preflight
	Headers     []string // fields that such requests may have, in canonical form; nil for any
	Expose      []string // fields of answers that pages may read, in addition to the fields about limits
	Credentials bool     // whether cookies and HTTP authentication are permitted
	MaxAge      time.Duration
}

// AnyOrigin reports whether all origins are allowed.
func (c *CORS) AnyOrigin() bool { return c.Origins[0] == "*" }

// Allows reports whether an origin is allowed.
func (c *CORS) Allows(origin string) bool {
	origin = strings.ToLower(origin)
	return c.AnyOrigin() || slices.ContainsFunc(c.Origins, func(pattern string) bool {
		prefix, suffix, ok := strings.Cut(pattern, "*")
		return pattern == origin || ok && len(origin) > len(prefix)+len(suffix) && strings.HasPrefix(origin, prefix) &&
			strings.HasSuffix(origin, suffix) && !strings.ContainsAny(origin[len(prefix):len(origin)-len(suffix)], "/:@")
	})
}

func (c *CORS) section() section {
	field := scalar(textSchema, func(d *decoder, n *yaml.Node, keyName, s string) string {
		if !httpguts.ValidHeaderFieldName(s) {
			d.Fail(n, "%s: %s is not the name of an HTTP header; write for example X-Request-Id", keyName, yamlfile.Quote(s))
		}
		return http.CanonicalHeaderKey(s)
	})
	return section{
		name: "cors", entries: []entry{
			newEntry("origins", list(origin, nil), &c.Origins, "",
				"scheme and host of pages that may read answers, as browsers send them; `https://*.example.com` for "+
					"all hosts below; `*` for all origins, not with `credentials`").required("write for example origins: https://app.example.com"),
			newEntry("methods", list(method, nil), &c.Methods, "[GET, HEAD, POST]", "the methods of requests that need a preflight"),
			newEntry("headers", list(field, nil), &c.Headers, "", "header fields that these requests may have").withDefaultText("any"),
			newEntry("expose", list(field, nil), &c.Expose, "", "header fields of the upstream's answers that scripts may "+
				"read, in addition to those about limits"),
			newEntry("credentials", boolean, &c.Credentials, "", "whether scripts may send cookies and HTTP authentication"),
			newEntry("max_age", seconds(24*time.Hour, ""), &c.MaxAge, "10m", "how long a browser keeps the answer to a preflight"),
		},
		check: func(d *decoder, _ *yaml.Node, nodes map[string]*yaml.Node) {
			switch {
			case !slices.Contains(c.Origins, "*"):
			case len(c.Origins) > 1:
				d.Fail(nodes["origins"], "origins: * stands for all origins: leave the others out")
			case c.Credentials:
				d.Fail(nodes["origins"], "origins: with credentials, every page on the web could act as your users: list the origins")
			}
		},
	}
}

func (c *CORS) describe() string {
	if c == nil {
		return ""
	}
	return strings.Join(c.Origins, ", ")
}

// origin describes an origin, as browsers write it.
var origin = scalar(pattern("", `^(\*|[A-Za-z][A-Za-z0-9+.-]*://[^/?#]+)$`), func(d *decoder, n *yaml.Node, keyName, s string) string {
	if s == "*" {
		return s
	}
	u, err := url.Parse(strings.Replace(s, "://*.", "://any.", 1))
	isInvalid := err != nil || u.Scheme == "" || u.Hostname() == "" || strings.Contains(u.Host, "*") ||
		*u != url.URL{Scheme: u.Scheme, Host: u.Host}
	if !isInvalid {
		_, err := netip.ParseAddr(u.Hostname())
		isInvalid = err == nil && u.Host != s[strings.Index(s, "://")+3:] ||
			u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80"
	}
	if isInvalid {
		d.Fail(n, "%s: %s: want scheme and host as browsers send them, such as https://app.example.com, without a path "+
			"and without the scheme's own port; https://*.example.com for all below it; or *", keyName, yamlfile.Quote(s))
	}
	return strings.ToLower(s)
})
