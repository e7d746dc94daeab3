package serve

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/weir-go/weir/cmd/weir/internal/config"
	"github.com/weir-go/weir/httplimit"
)

// fieldsRead are the headers and cookies that the rules of a file read one value of, and whether they read the host.
type fieldsRead struct {
	headers []string // canonical
	cookies []string
	host    bool
}

func newFieldsRead(f *config.File) (read fieldsRead) {
	header := func(name string) {
		if name != "" && !slices.Contains(read.headers, name) {
			read.headers = append(read.headers, name)
		}
	}
	for i := range f.Rules {
		rule := &f.Rules[i]
		read.host = read.host || len(rule.Match.Hosts) > 0 || rule.Key.Uses(config.SourceHost)
		header(rule.Cost.Header)
		if rule.Tiers != nil {
			header(rule.Tiers.Header)
		}
		for _, part := range rule.Key {
			for _, s := range part {
				switch s.Kind {
				case config.SourceHeader:
					header(s.Name)
				case config.SourceCookie:
					if !slices.Contains(read.cookies, s.Name) {
						read.cookies = append(read.cookies, s.Name)
					}
				case config.SourceIP, config.SourcePath, config.SourceMethod, config.SourceHost, config.SourceGlobal,
					config.SourceNone:
				}
			}
		}
	}
	return read
}

// check returns an error if a request has two different values of one of the fields. The limits would read one of them
// and the server perhaps the other, so a client could choose its bucket beside the value that identifies it.
func (read *fieldsRead) check(r *http.Request) error {
	for _, name := range read.headers {
		if _, ok := httplimit.HeaderValue(r, name); !ok {
			return fmt.Errorf("the header %s is there twice, with different values", name)
		}
	}
	for _, name := range read.cookies {
		if _, ok := httplimit.CookieValue(r, name); !ok {
			return fmt.Errorf("the cookie %s is there twice, with different values", name)
		}
	}
	return nil
}
