package server

import "fmt"

// WeirName is the name of the weir server, whose limiter has a target.
const WeirName = "weir"

// Weir returns the weir server whose program is at path.
func Weir(path string) *Server {
	return &Server{
		Name: WeirName, Program: weirProgram(path), Modes: Modes, Status: 429, write: weirFile("ietf"), args: weirArgs,
		Says: "GOMAXPROCS as Go sets it; without is a rule that matches no request; answers carry RateLimit headers",
	}
}

// WeirSilent returns weir without the header fields about the limit. The other servers do not send these fields either.
// WeirSilent differs from weir only in the mode With.
func WeirSilent(path string) *Server {
	return &Server{
		Name: "weir, headers: none", Program: weirProgram(path), Modes: []Mode{Without, With},
		write: weirFile("none"), args: weirArgs,
		Says: "the same, and answers say nothing about the limit, as those of nginx and HAProxy",
	}
}

func weirProgram(path string) Program {
	return Program{Name: path, Package: "build it with make build, or name it with --weir", Version: []string{"version"}}
}

func weirArgs(config string) []string { return []string{"serve", config} }

// weirFile returns a function that writes a rule file. A rule file must have a rule. So without a limiter, its only
// rule is for a host that no request names.
func weirFile(headers string) func(Site) string {
	return func(s Site) string {
		match, rate, burst := "", fmt.Sprintf("%d/s", Plenty), Plenty
		switch s.Mode {
		case Without:
			match = ", match: {host: nobody.invalid}"
		case Refuse:
			rate, burst = "1/m", Once
		}
		return fmt.Sprintf(`listen: %s
upstream: http://%s
headers: %s
rules:
  - {name: clients, key: "header:%s", rate: %s, burst: %d%s}
`, s.Listen, s.Upstream, headers, s.Header, rate, burst, match)
	}
}
