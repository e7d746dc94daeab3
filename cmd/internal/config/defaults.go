package config

import (
	"time"

	"github.com/weir-go/weir/engine"
)

// IPv6Prefix is how many bits of an IPv6 address make a client where nothing else is said: a customer has
// the addresses that share them, at the least.
const IPv6Prefix = 64

// Single returns the file of one rule and nothing else: each address is a client, and requests are
// answered by the echo.
func Single(r Rule) *File {
	f := defaults()
	f.Name = r.Name
	f.Listen = []Listener{{Address: defaultAddress}}
	f.ClientIP.From = FromSocket
	f.Rules = []Rule{r}
	return f
}

// NewRule returns a rule for all requests by their address, with everything at its default but the
// name. The policy is for the caller to fill in.
func NewRule(name string) Rule {
	return Rule{
		Name:    name,
		Key:     Key{{{Kind: SourceIP}}},
		Cost:    Cost{Default: 1, Max: 1},
		MaxKeys: engine.DefaultMaxKeys,
	}
}

const defaultAddress = "127.0.0.1:8080"

// defaults returns a file with nothing but what goes without saying.
func defaults() *File {
	return &File{
		AmbiguousPaths: AmbiguousMatch,
		Headers:        HeadersIETF,
		Response:       Response{Body: BodyProblem},
		ClientIP:       ClientIP{IPv4Prefix: 32, IPv6Prefix: IPv6Prefix},
		Log:            Log{Format: LogText},
		Server: Server{
			ReadHeaderTimeout:       10 * time.Second,
			IdleTimeout:             2 * time.Minute,
			ShutdownTimeout:         10 * time.Second,
			MaxHeaderBytes:          64 << 10,
			MaxConnections:          ByOpenFiles,
			MaxConnectionsPerClient: ByShare,
			SendTimeout:             time.Minute,
			MaxWaiting:              1000,
			MinBodyRate:             240,
		},
	}
}
