package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Describe writes what the file means: where it listens, where requests go, and every rule in
// words, with the memory that it takes.
func (f *File) Describe(w io.Writer) error {
	var b strings.Builder
	for _, l := range f.Listen {
		fmt.Fprintf(&b, "listen    %s\n", l)
	}
	if a := f.Admin; a != nil {
		fmt.Fprintf(&b, "admin     %s, keys %s%s\n", a.Address, a.Keys, when(a.Pprof, ", pprof"))
	}
	if f.Decide != nil {
		fmt.Fprintf(&b, "decide    %s%s, for other proxies\n", f.Decide.Address, when(f.Decide.ReusePort, reusable))
	}
	if r := f.Redis; r != nil {
		r.describe(&b)
	}
	for _, m := range f.Exempt {
		fmt.Fprintf(&b, "exempt    %s\n", m)
	}
	for _, r := range f.Routes {
		fmt.Fprintf(&b, "upstream  %s for %s\n", &r.Upstream, r.Match)
	}
	switch {
	case f.RedisAlone():
	case f.Upstream != nil:
		fmt.Fprintf(&b, "upstream  %s\n", f.Upstream)
	case f.Echo():
		b.WriteString("upstream  the built-in echo\n")
	default:
		b.WriteString("upstream  none for other requests: they are answered 404\n")
	}
	if !f.RedisAlone() {
		fmt.Fprintf(&b, "client    %s\n", f.ClientIP.describe(len(f.TrustedProxies)))
	}
	if s := f.Store; s != nil {
		fmt.Fprintf(&b, "store     %s, %d %s; if it is lost: %v\n", s.Redacted(), s.Nodes,
			english.PluralWord(s.Nodes, "node", ""),
			s.OnLoss)
	}
	if f.AmbiguousPaths == AmbiguousRefuse {
		b.WriteString("paths     400 to what can be read in several ways\n")
	}
	if !f.RedisAlone() {
		look := f.Response.Refusal.String()
		fmt.Fprintf(&b, "answer    headers %s, body %s%s\n", f.Headers, f.Response.Body, when(look != "", "; refusals: "+look))
	}
	if f.CORS != nil {
		fmt.Fprintf(&b, "cors      %s\n", strings.Join(f.CORS.Origins, ", "))
	}
	total, err := f.Redis.Memory()
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	for i := range f.Rules {
		r := &f.Rules[i]
		memory, err := r.Memory()
		if err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
		total += memory
		r.describe(&b, memory)
	}
	fmt.Fprintf(&b, "\n%d %s, about %s of memory when all keys are there\n", len(f.Rules),
		english.PluralWord(len(f.Rules), "rule", ""), humanize.IBytes(total))
	_, err = io.WriteString(w, b.String())
	return err
}

func (c ClientIP) describe(proxies int) string {
	from := "the connection's address"
	if c.From != FromSocket {
		source := string(c.From)
		if c.From == FromHeader {
			source = "the header " + c.Header
		}
		from = fmt.Sprintf("%s of %d trusted %s, otherwise %s", source, proxies,
			english.PluralWord(proxies, "proxy", ""), from)
	}
	if c.IPv4Prefix < 32 {
		from += fmt.Sprintf("; IPv4 by /%d", c.IPv4Prefix)
	}
	return from + fmt.Sprintf("; IPv6 by /%d", c.IPv6Prefix)
}

func (r *Rule) describe(b *strings.Builder, memory uint64) {
	fmt.Fprintf(b, "\nrule %s%s\n", r.Name, when(r.Shadow, " (shadow: counts, never refuses)"))
	line := func(what, format string, args ...any) {
		fmt.Fprintf(b, "  %-8s%s\n", what, fmt.Sprintf(format, args...))
	}
	line("for", "%s", r.Match)
	line("by", "%s", r.Key)
	line("limit", "%s", r.OwnLimit())
	if r.Tiers != nil {
		for i, value := range r.Tiers.Values {
			line("", "%s for %s: %s", r.tierLimit(i), r.Tiers.Header, value)
		}
	}
	if r.MaxWait > 0 {
		line("wait", "up to %v for tokens before a refusal", r.MaxWait)
	}
	switch {
	case r.Cost.Header != "":
		line("cost", "the header %s, %d without it, at most %d", r.Cost.Header, r.Cost.Default, r.Cost.Max)
	case r.Cost.Default > 1:
		line("cost", "%d", r.Cost.Default)
	}
	if len(r.Refund) > 0 {
		line("refund", "on %s", r.Refund)
	}
	if r.Refusal != nil {
		line("answer", "refusals: %s", r.Refusal)
	}
	if r.Store != nil {
		line("kept", "in the store; memory %s for %s keys of this machine", humanize.IBytes(memory),
			humanize.Comma(int64(r.MaxKeys)))
		return
	}
	if r.Spread {
		line("bucket", "on all processors")
		return
	}
	if !r.Counts() {
		return // it has no keys
	}
	line("memory", "%s for %s keys, then %s", humanize.IBytes(memory), humanize.Comma(int64(r.MaxKeys)),
		overflows[r.Overflow])
	if r.State != "" {
		line("state", "%s", r.State)
	}
}

// String returns the statuses as they are written in a file.
func (s Statuses) String() string {
	words := make([]string, len(s))
	for i, r := range s {
		if words[i] = fmt.Sprint(r.First); r.Last > r.First {
			words[i] = fmt.Sprintf("%dxx", r.First/100)
		}
	}
	return oneOf(words)
}

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}
