// Package server starts the web servers whose limiters are measured, and the upstream behind them. All listen on
// loopback, and each is a fresh process.
package server

import "fmt"

// A Mode says what a limiter must do.
type Mode string

const (
	Without Mode = "without" // there is none
	With    Mode = "with"    // it counts every client, and refuses none
	Refuse  Mode = "refuse"  // it refuses all requests of a client but the first
)

// Modes has all modes, in the order in which they are measured.
var Modes = []Mode{Without, With, Refuse}

// The limit of With is so high that no client is refused, and the same for all servers. The limit of Refuse is one
// request in a time that is longer than a run. nginx has no period above a minute.
const (
	Plenty = 100_000 // a second for each client, all of which may come at once
	Once   = 1
)

// A Server is a program with a limiter.
type Server struct {
	Name    string  `json:"name"`
	Program Program `json:"-"`
	Modes   []Mode  `json:"-"`
	Status  int     `json:"-"` // of a refusal
	write   func(Site) string
	args    func(config string) []string
	Says    string `json:"says"` // what is to be known about its configuration
}

// A Site has the address of a server, the server behind it, and the limit.
type Site struct {
	Listen, Upstream string // host:port
	Dir              string // for its files
	Mode             Mode
	Header           string // with the client's name
}

// Config returns the configuration for a site. It returns an error for a mode that the server does not have.
func (s *Server) Config(site Site) (string, error) {
	for _, m := range s.Modes {
		if m == site.Mode {
			return s.write(site), nil
		}
	}
	return "", fmt.Errorf("%s: mode %q: want one of %q", s.Name, site.Mode, s.Modes)
}
