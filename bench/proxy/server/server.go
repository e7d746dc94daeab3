// Package server starts the web servers whose limiters are measured, and the upstream behind them, as fresh processes
// on loopback addresses.
package server

import "fmt"

// A Mode is what a limiter must do with the requests of a measurement.
type Mode string

const (
	Without Mode = "without" // the server has no limiter
	With    Mode = "with"    // the limiter counts every client, and refuses none
	Refuse  Mode = "refuse"  // the limiter refuses all requests of a client except the first
)

// Modes contains all modes, in the order in which they are measured.
var Modes = []Mode{Without, With, Refuse}

// In the mode With, no client reaches the common limit. In the mode Refuse, the limit is one request per minute. A
// minute is longer than a run, and is nginx's longest period.
const (
	Plenty = 100_000 // per second for each client, and also the burst
	Once   = 1
)

// A Server is a program with a limiter.
type Server struct {
	Name    string  `json:"name"`
	Program Program `json:"-"`
	Modes   []Mode  `json:"-"`
	Status  int     `json:"-"` // status of a refusal
	write   func(Site) string
	args    func(config string) []string
	Says    string `json:"says"` // a remark about its configuration
}

// A Site contains the address of a server, the address of the server behind it, and the limit.
type Site struct {
	Listen, Upstream string // host:port
	Dir              string // folder for the server's files
	Mode             Mode
	Header           string // field with the client's name
}

// Config returns the configuration for a site, or an error if the server lacks the site's mode.
func (s *Server) Config(site Site) (string, error) {
	for _, m := range s.Modes {
		if m == site.Mode {
			return s.write(site), nil
		}
	}
	return "", fmt.Errorf("%s: mode %q: want one of %q", s.Name, site.Mode, s.Modes)
}
