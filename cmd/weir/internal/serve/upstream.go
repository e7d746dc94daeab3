package serve

import (
	"fmt"
	"net/url"
)

// Upstream is the base URL of the server behind the proxy.
type Upstream struct{ url url.URL }

// UnmarshalText accepts an absolute http or https URL, with a path or query to
// be put before the request's if wanted. It refuses what the proxy would have
// to ignore.
func (u *Upstream) UnmarshalText(text []byte) error {
	const example = "write for example http://127.0.0.1:9000"
	parsed, err := url.Parse(string(text))
	if err != nil {
		return fmt.Errorf("upstream %q: not a URL; %s: %w", text, example, err)
	}
	shown := string(text)
	if parsed.User != nil {
		shown = parsed.Redacted() // no password on the screen
	}
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return fmt.Errorf("upstream %q: want a URL that begins with http:// or https://; %s", shown, example)
	case parsed.Hostname() == "":
		return fmt.Errorf("upstream %q: the URL has no host; %s", shown, example)
	case parsed.User != nil:
		return fmt.Errorf("upstream %q: a user name and password in the URL are not passed on; leave them out", shown)
	case parsed.Fragment != "":
		return fmt.Errorf("upstream %q: a fragment (#%s) is never sent to a server; leave it out", shown, parsed.Fragment)
	}
	u.url = *parsed
	return nil
}

// String returns the URL.
func (u *Upstream) String() string { return u.url.String() }
