// Package directive reads directives of the Caddyfile. A table has the options that a block may have, and their
// arguments.
package directive

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// A Handler is the handler that a directive configures.
type Handler interface {
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler
}

// Register registers a directive with Caddy before basic_auth. The last argument returns a new handler for the
// directive.
func Register(name string, make func() Handler) {
	httpcaddyfile.RegisterHandlerDirective(name, func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		handler := make()
		return handler, handler.UnmarshalCaddyfile(h.Dispenser)
	})
	httpcaddyfile.RegisterDirectiveOrder(name, httpcaddyfile.Before, "basic_auth")
}

// An Option describes a line of a block. The line may begin another block.
type Option struct {
	name       string
	read       Reader
	repeatable bool
}

// Once returns an option that may occur once in a block.
func Once(name string, read Reader) Option { return Option{name: name, read: read} }

// Many returns an option that may occur several times in a block.
func Many(name string, read Reader) Option { return Option{name: name, read: read, repeatable: true} }

// Read reads a directive without arguments and its block, from the directive's name.
func Read(d *caddyfile.Dispenser, options ...Option) error {
	d.Next()
	name := d.Val()
	if d.NextArg() {
		return d.ArgErr()
	}
	return Block(d, name, options...)
}

// Block reads the block that follows. Errors contain the name of the block.
func Block(d *caddyfile.Dispenser, blockName string, options ...Option) error {
	seen := map[string]bool{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		i := slices.IndexFunc(options, func(o Option) bool { return o.name == name })
		if i < 0 {
			return d.Errf("unknown option %q of %s: want %s", name, blockName, list(options))
		}
		if seen[name] && !options[i].repeatable {
			return d.Errf("%s is given twice", name)
		}
		seen[name] = true
		if err := options[i].read(d); err != nil {
			return err
		}
	}
	return nil
}

func list(options []Option) string {
	var names []string
	for _, o := range options {
		names = append(names, o.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
