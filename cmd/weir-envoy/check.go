package main

import (
	"fmt"
	"os"

	"github.com/weir-go/weir/cmd/internal/envoy"
	"github.com/weir-go/weir/cmd/internal/envoy/config"
	"github.com/weir-go/weir/cmd/internal/envoy/source"
)

type checkCommand struct {
	Path              string `arg:"" help:"A directory, or a file."`
	MergeDomainConfig bool   `env:"MERGE_DOMAIN_CONFIG" help:"Several files may have one domain."`
	Compat            bool   `help:"Also print what the reference would refuse or read differently."`
}

// Run prints the mistakes in the files. If there are none, it prints how many rules there are.
func (c *checkCommand) Run() error {
	compiled, warnings, err := source.Read(c.Path, config.Options{MergeDomains: c.MergeDomainConfig})
	for _, warning := range warnings {
		fmt.Fprintln(os.Stderr, "warning:", warning)
	}
	if err != nil {
		return err
	}
	service, err := envoy.New(envoy.Options{MaxKeys: 1})
	if err != nil {
		return err
	}
	defer service.Close()
	if err := service.SetConfig(compiled); err != nil {
		return err
	}
	if c.Compat {
		for _, difference := range compiled.Differences() {
			fmt.Println("differs:", difference)
		}
	}
	fmt.Printf("%s: %d domains, %d rules\n", c.Path, compiled.Domains(), len(compiled.Rules()))
	return nil
}
