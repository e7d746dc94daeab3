package replay

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// A client is one key of the log, with the results of its requests.
type client struct {
	name     string
	requests uint64
	charges  []charge // one for each element of run.trials, and then one for each element of run.logTrials
}

// A charge has the effect of one limiter on a client.
type charge struct {
	key      engine.Key
	refused  uint64
	admitted span // counts the admitted requests
}

// clients finds the client of a log line. As for weir serve, all spellings of an address are one client, and so are all
// IPv6 addresses of a network. An IPv4-mapped address counts as IPv4. The text in the log is looked up first, because
// this needs no parsing or allocation. If the text is new, the client is looked up by its name. Memory grows with the
// number of clients, because the report names all of them.
type clients struct {
	ip     *httplimit.ClientIP
	byText map[string]*client
	byName map[string]*client
}

func newClients(ip *httplimit.ClientIP) *clients {
	return &clients{ip: ip, byText: map[string]*client{}, byName: map[string]*client{}}
}

// find returns the client of a log line. The parameter host is the text in the line's client field.
func (cs *clients) find(host []byte, trials, logTrials []*trial) *client {
	if c, ok := cs.byText[string(host)]; ok {
		return c
	}
	text := string(host)
	name := clientName(cs.ip, text)
	c, ok := cs.byName[name]
	if !ok {
		c = &client{name: name}
		for _, t := range slices.Concat(trials, logTrials) {
			c.charges = append(c.charges, charge{key: t.limiter.Key(name)})
		}
		cs.byName[name] = c
	}
	cs.byText[text] = c
	return c
}

// logClient determines the client of a log line. The key is the client's address. If the log has a name instead of an
// address, the key is this name.
type logClient struct{ *httplimit.ClientIP }

// Key implements [rules.Client].
func (c logClient) Key(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
	if !c.Addr(r).IsValid() {
		return h.Key(r.RemoteAddr), true
	}
	return c.ClientIP.Key(h, r)
}

// clientName returns the name under which a client is counted and shown. It is the client's address, cut to the bits
// that count. If the server looks names up, it is the host name, unchanged.
func clientName(ip *httplimit.ClientIP, host string) string {
	prefix := ip.Prefix(&http.Request{RemoteAddr: host})
	switch {
	case !prefix.IsValid():
		return host
	case prefix.IsSingleIP():
		return prefix.Addr().String()
	}
	return prefix.String()
}

func keyName(ip *httplimit.ClientIP, texts []string) string {
	names := make([]string, len(texts))
	for i, text := range texts {
		kind, value, _ := strings.Cut(text, ":")
		switch kind {
		case "ip":
			names[i] = clientName(ip, value)
		case "number":
			names[i] = "everybody"
		default:
			names[i] = printable(value)
		}
	}
	return strings.Join(names, " ")
}

func printable(s string) string {
	const maxLength = 80
	if len(s) > maxLength {
		s = s[:maxLength] + "..."
	}
	if quoted := strconv.QuoteToGraphic(s); quoted[1:len(quoted)-1] != s {
		return quoted
	}
	return s
}
