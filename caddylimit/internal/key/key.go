// Package key makes the keys of requests from the placeholders of Caddy.
package key

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/httplimit"
)

// A Template is a text with placeholders. Its methods are safe for concurrent use.
type Template struct {
	text       string
	isConstant bool
	name       string // of the placeholder, if the text is only one placeholder; otherwise ""
}

// Parse reads a template. Placeholders are replaced once for each request, so their values contain no placeholders. An
// unknown or empty placeholder becomes the empty text. An unclosed brace, or a placeholder that no request can have, is
// an error. Probable mistakes give warnings.
func Parse(text string) (t Template, warnings []string, err error) {
	names, err := placeholders(text)
	if err != nil {
		return t, nil, err
	}
	for _, name := range names {
		warning, err := checkPlaceholder(name)
		if err != nil {
			return t, nil, fmt.Errorf("%q: %w", text, err)
		}
		if warning != "" {
			warnings = append(warnings, fmt.Sprintf("%q: %s", text, warning))
		}
	}
	t = Template{text: text, isConstant: len(names) == 0 && !strings.Contains(text, `\`)}
	if len(names) == 1 && text == "{"+names[0]+"}" {
		t.name = names[0]
	}
	return t, warnings, nil
}

// Of returns the text of the template for a request.
func (t *Template) Of(r *http.Request) string {
	if t.isConstant {
		return t.text
	}
	replacer := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if t.name != "" {
		text, _ := replacer.GetString(t.name)
		return text
	}
	return replacer.ReplaceAll(t.text, "")
}

// A Key makes the keys of requests from one or more templates, with prefix lengths for addresses.
type Key struct {
	templates []Template
	ip        *httplimit.ClientIP
}

// New returns a key. The prefixes apply to texts that are addresses, in bits; 0 stands for the whole address. A prefix
// out of range and a bad template ([Parse]) are errors.
func New(templates []string, ipv4Prefix, ipv6Prefix int) (k *Key, warnings []string, err error) {
	k = &Key{}
	for _, text := range templates {
		t, moreWarnings, err := Parse(text)
		if err != nil {
			return nil, nil, fmt.Errorf("key %w", err)
		}
		k.templates, warnings = append(k.templates, t), append(warnings, moreWarnings...)
	}
	if ipv4Prefix < 0 || ipv4Prefix > 32 {
		return nil, nil, fmt.Errorf("ipv4_prefix %d: want 1 to 32, or 0 for the whole address", ipv4Prefix)
	}
	if ipv6Prefix < 0 || ipv6Prefix > 128 {
		return nil, nil, fmt.Errorf("ipv6_prefix %d: want 1 to 128, or 0 for the whole address", ipv6Prefix)
	}
	bits := func(n, full int) int {
		if n == 0 {
			return full
		}
		return n
	}
	k.ip, err = httplimit.NewClientIP(httplimit.IPv4Prefix(bits(ipv4Prefix, 32)), httplimit.IPv6Prefix(bits(ipv6Prefix, 128)))
	return k, warnings, err
}

// Key implements [httplimit.KeyFunc]. All spellings of an address give the same key, also IPv4 in IPv6 and with any
// zone. The hash covers the length of each template's text, so that no client can shift text between templates.
func (k *Key) Key(h httplimit.Hasher, r *http.Request) (engine.Key, bool) {
	if len(k.templates) == 1 {
		return k.part(h, r, 0), true
	}
	return h.Join(len(k.templates), func(h httplimit.Hasher, i int) bool {
		k.part(h, r, i)
		return true
	})
}

func (k *Key) part(h httplimit.Hasher, r *http.Request, i int) engine.Key {
	t := &k.templates[i]
	text := t.Of(r)
	if addr, ok := readAddr(text); ok && !t.isConstant {
		return h.KeyAddr(k.ip.PrefixOf(addr).Addr())
	}
	return h.Key(text)
}

// Text returns the key of a request as readable text.
func (k *Key) Text(r *http.Request) string {
	texts := make([]string, len(k.templates))
	for i := range k.templates {
		texts[i] = k.templates[i].Of(r)
	}
	return strings.Join(texts, " ")
}

// Lookup returns the text of the first template for a request, to be searched for in a list of keys from [Key.Meant].
func (k *Key) Lookup(r *http.Request) string {
	t := &k.templates[0]
	return k.Meant(t.Of(r))
}

// Meant returns a key of a list in the form in which [Key.Lookup] returns it. For an address, this form is the prefix
// of the address.
func (k *Key) Meant(text string) string {
	if addr, ok := readAddr(text); ok {
		return "ip:" + k.ip.PrefixOf(addr).String()
	}
	return "text:" + text
}

// readAddr parses an address. It first rejects texts that cannot be an address, because ParseAddr allocates its error.
func readAddr(text string) (netip.Addr, bool) {
	const maxLen = len("0000:0000:0000:0000:0000:ffff:255.255.255.255")
	text, zone, hasZone := strings.Cut(text, "%")
	if len(text) < len("::") || len(text) > maxLen || !strings.ContainsAny(text, ".:") || hasZone && zone == "" {
		return netip.Addr{}, false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > ':') && c != '.' && (c|0x20 < 'a' || c|0x20 > 'f') {
			return netip.Addr{}, false
		}
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || hasZone && addr.Is4() {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}
