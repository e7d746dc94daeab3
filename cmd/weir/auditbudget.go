package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/internal/audit"
	"github.com/weir-go/weir/cmd/internal/audit/budget"
	"github.com/weir-go/weir/cmd/internal/limit"
)

// budgetFlags has the flags for an audit of a gateway of language models.
type budgetFlags struct {
	Budget  bool          `help:"The server is a gateway of language models: find out how it counts their tokens. The audit is the model behind it."`
	ModelAt string        `name:"model-at" default:"127.0.0.1:3000" placeholder:"ADDRESS" help:"With --budget: where the gateway looks for the model (default: ${default})."`
	Model   string        `default:"tiny" help:"With --budget: the name of the model (default: ${default})."`
	Tokens  int           `default:"10000" help:"With --budget: how many tokens each key has. None may come back during the audit (default: ${default})."`
	Settle  time.Duration `default:"100ms" help:"With --budget: how long the gateway may take to count an answer (default: ${default})."`
}

type tlsFlags struct {
	Insecure bool   `help:"Accept any certificate of the server."`
	CA       string `name:"ca" placeholder:"FILE" predictor:"file" help:"PEM file with the authorities that may have signed the server's certificate (default: those of the system)."`
}

// roots returns the certificate authorities that the flags name. If they name none, it returns nil, which means the
// system's authorities.
func (f tlsFlags) roots() (*x509.CertPool, error) {
	if f.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", f.CA)
	}
	return pool, nil
}

func (c *auditCommand) auditGateway() (*budget.Report, error) {
	f := c.Budget
	fields, err := c.fields()
	switch {
	case err != nil:
		return nil, err
	case f.Tokens < 4000 || f.Tokens > 1_000_000_000:
		return nil, limit.Misuse("--tokens %d: want 4000 to 1,000,000,000", f.Tokens)
	case f.Settle < 0 || f.Settle > time.Minute:
		return nil, limit.Misuse("--settle %v: want 0s to 1m", f.Settle)
	case !slices.ContainsFunc(fields, func(f [2]string) bool { return strings.Contains(f[1], "{n}") }):
		return nil, limit.Misuse("--budget needs a --header with {n} in its value, such as 'X-Team: team-{n}', " +
			"which gives each key a budget of its own")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	target, err := c.target(ctx)
	if err != nil {
		return nil, err
	}
	options := budget.Options{URL: target.URL, Address: target.Address, TLS: target.TLS("http/1.1"), Listen: f.ModelAt, Model: f.Model,
		Fields: fields, UserAgent: audit.UserAgent(), Tokens: f.Tokens, Settle: f.Settle}
	var finish func()
	options.Progress, finish = c.progress()
	defer finish()
	return budget.Run(ctx, options)
}
