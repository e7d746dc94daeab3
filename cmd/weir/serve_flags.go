package main

import (
	"cmp"

	"github.com/weir-go/weir/cmd/internal/limit"
	"github.com/weir-go/weir/cmd/internal/rulefile"
)

// serveFlags has the settings of a simple rule file as flags.
type serveFlags struct {
	Listen         string   `placeholder:"ADDRESS" help:"Where to listen, HOST:PORT or unix:/path; port 0 takes a free one (default: 127.0.0.1:8080)."`
	Admin          string   `placeholder:"ADDRESS" help:"Where to serve metrics and the live page, on a loopback address or unix:/path; none to turn them off (default: 127.0.0.1:8081)."`
	Upstream       string   `placeholder:"URL" help:"The server to pass requests to: http://, https:// or unix:/path. Without it a built-in echo answers."`
	Key            string   `placeholder:"KEY" help:"What identifies a bucket: ip, header:NAME, cookie:NAME, query:NAME, path, method, host, or global for one bucket (default: ip)."`
	TrustedProxies []string `name:"trusted-proxy" placeholder:"ADDRESS" help:"A proxy, or a range of proxies, whose X-Forwarded-For is trusted. May be repeated."`
	limit.Flags
}

func (c *serveCommand) name() (string, error) {
	if c.File != "" && c.Config != "" {
		return "", limit.Misuse("%s and --config %s: want one rule file", c.File, c.Config)
	}
	if c.Config != "" {
		return c.Config, nil
	}
	return c.File, nil
}

func (f *serveFlags) asFile() (*rulefile.File, error) {
	policy, err := f.Policy()
	if err != nil {
		return nil, err
	}
	rule := rulefile.NewRule("default")
	rule.Policy, rule.MaxKeys = policy, f.MaxKeys
	if f.Key != "" {
		if rule.Key, err = rulefile.ParseKey(f.Key); err != nil {
			return nil, limit.Misuse("--key: %v", err)
		}
	}
	file := rulefile.Single(rule)
	file.Name = "the command line"
	if f.Listen != "" {
		if file.Listen[0].Address, err = rulefile.ParseAddress(f.Listen); err != nil {
			return nil, limit.Misuse("--listen: %v", err)
		}
	}
	if f.Admin != "none" {
		if file.Admin, err = rulefile.ParseAdmin(cmp.Or(f.Admin, "127.0.0.1:8081")); err != nil {
			return nil, limit.Misuse("--admin: %v", err)
		}
	}
	if f.Upstream != "" {
		if file.Upstream, err = rulefile.ParseUpstream(f.Upstream); err != nil {
			return nil, limit.Misuse("--upstream: %v", err)
		}
	}
	for _, text := range f.TrustedProxies {
		proxies, err := rulefile.ParseProxies(text)
		if err != nil {
			return nil, limit.Misuse("--trusted-proxy: %v", err)
		}
		file.TrustedProxies = append(file.TrustedProxies, proxies...)
		file.ClientIP.From = rulefile.FromXForwardedFor
	}
	return file, nil
}
