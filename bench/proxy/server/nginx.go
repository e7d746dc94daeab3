package server

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Nginx returns nginx with limit_req.
func Nginx() *Server {
	return &Server{
		Name: "nginx limit_req", Program: nginxProgram, Modes: Modes, Status: 429, write: nginxProxy, args: nginxArgs,
		Says: "worker_processes 1, no access log, refusals not logged",
	}
}

// upstream returns an nginx that answers all requests itself, with little processor time.
func upstream() *Server {
	return &Server{
		Name: "upstream", Program: nginxProgram, Modes: []Mode{Without}, args: nginxArgs,
		write: func(s Site) string { return nginx(s, "", `default_type text/plain; return 200 "hello, world\n";`) },
	}
}

var nginxProgram = Program{Name: "nginx", Package: "apt-get install nginx-light", Version: []string{"-v"}}

func nginxArgs(config string) []string {
	return []string{"-p", filepath.Dir(config), "-c", config}
}

func nginxProxy(s Site) string {
	zone, limit := "", ""
	if s.Mode != Without {
		rate, burst := fmt.Sprintf("%dr/s", Plenty), fmt.Sprintf(" burst=%d nodelay", Plenty)
		if s.Mode == Refuse {
			rate, burst = "1r/m", "" // in nginx, burst counts the requests beyond the first
		}
		variable := "$http_" + strings.ReplaceAll(strings.ToLower(s.Header), "-", "_")
		zone = fmt.Sprintf("limit_req_zone %s zone=clients:10m rate=%s;\n\tlimit_req_status 429;", variable, rate)
		limit = fmt.Sprintf("limit_req zone=clients%s;\n\t\t\t", burst)
	}
	// As in weir and HAProxy, connections to the upstream stay open.
	zone += fmt.Sprintf(`
	upstream behind { server %s; keepalive 64; keepalive_requests 1000000000; }`, s.Upstream)
	return nginx(s, zone, limit+`proxy_pass http://behind;
			proxy_http_version 1.1;
			proxy_set_header Connection "";`)
}

// nginx returns a configuration of nginx, with additions to its http block and its only location block.
func nginx(s Site, http, location string) string {
	var temp strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "\t%s_temp_path %s;\n", kind, filepath.Join(s.Dir, kind))
	}
	return fmt.Sprintf(`daemon off;
worker_processes 1;
pid %s;
error_log stderr crit;
events { worker_connections 4096; }
http {
	access_log off;
	keepalive_requests 1000000000;
%s	%s
	server {
		listen %s;
		location / {
			%s
		}
	}
}
`, filepath.Join(s.Dir, "pid"), temp.String(), http, s.Listen, location)
}
