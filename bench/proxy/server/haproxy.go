package server

import (
	"fmt"
	"strings"
)

// HAProxy returns HAProxy with a stick table.
func HAProxy() *Server {
	return &Server{
		Name:    "HAProxy stick table",
		Program: Program{Name: "haproxy", Package: "apt-get install haproxy", Version: []string{"-v"}},
		Modes:   Modes, Status: 429, write: haproxy,
		args: func(config string) []string { return []string{"-db", "-f", config} },
		Says: "nbthread 1, no log",
	}
}

func haproxy(s Site) string {
	limit := ""
	if s.Mode != Without {
		period, most := "1s", Plenty
		if s.Mode == Refuse {
			period, most = "1m", Once
		}
		limit = fmt.Sprintf(`	stick-table type string len 32 size 100k expire 2m store http_req_rate(%s)
	http-request track-sc0 req.hdr(%s)
	http-request deny deny_status 429 if { sc_http_req_rate(0) gt %d }
`, period, strings.ToLower(s.Header), most)
	}
	return fmt.Sprintf(`global
	nbthread 1
	maxconn 4096

defaults
	mode http
	timeout connect 10s
	timeout client 1m
	timeout server 1m

frontend clients
	bind %s
%s	default_backend behind

backend behind
	http-reuse always
	server upstream %s
`, s.Listen, limit, s.Upstream)
}
