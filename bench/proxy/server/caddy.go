package server

import "fmt"

// CaddyName is the name of the Go server whose speed weir must at least reach.
const CaddyName = "Caddy reverse_proxy"

// Caddy returns Caddy with its reverse_proxy. Caddy itself contains no limiter.
func Caddy() *Server {
	return &Server{
		Name:    CaddyName,
		Program: Program{Name: "caddy", Package: "make build-caddy, or apt-get install caddy", Version: []string{"version"}},
		Modes:   []Mode{Without}, write: caddy,
		args: func(config string) []string { return []string{"run", "--adapter", "caddyfile", "--config", config} },
		Says: "GOMAXPROCS as Go sets it, no access log",
	}
}

func caddy(s Site) string {
	return fmt.Sprintf(`{
	admin off
	auto_https off
	storage file_system %s
	servers {
		protocols h1
	}
}

http://%s {
	reverse_proxy %s
}
`, s.Dir, s.Listen, s.Upstream)
}
