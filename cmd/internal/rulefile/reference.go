package rulefile

import (
	"fmt"
	"strings"

	"github.com/weir-go/weir/cmd/internal/proxy"
	"github.com/weir-go/weir/httplimit/reading"
)

// Reference returns the tables of docs/configuration.md by section.
func Reference() map[string]string {
	return map[string]string{
		"file": table(new(File).section()), "listen": table(new(Listener).section()), "admin": table(new(Admin).section()),
		"tls": table(new(TLS).section()), "decide": table(new(Decide).section()), "redis": table(new(Redis).section()),
		"upstream": table(new(Upstream).section()), "health": table(healthSection(new(proxy.Health))), "route": table(new(Route).section()),
		"client_ip": table(new(ClientIP).section()), "response": table(new(Response).section()), "cors": table(new(CORS).section()),
		"server": table(new(Server).section()), "log": table(new(Log).section()), "store": table(new(Store).section()),
		"rule": table(new(ruleText).section()), "match": table(ruleMatch(new(reading.Match))), "path": table(pathText(new(reading.Path))),
		"tiers": table(new(tierTexts).section()), "quota": table(new(quotaText).section()),
		"tier": table(new(tierText).section()), "cost": table(new(Cost).section()),
		"tokens": table(new(Tokens).section()), "count": table(new(Count).section()),
		"test": table(new(Test).section(nil)), "expect": table(new(Test).expected(nil)),
	}
}

func table(s section) string {
	var b strings.Builder
	b.WriteString("| key | what it says | default | range |\n|---|---|---|---|\n")
	for _, e := range s.entries {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.name, e.help, e.defaultText(), e.span)
	}
	if s.open {
		fmt.Fprintf(&b, "| `%s` | anything: weir ignores keys with this prefix | | |\n", ownKeys)
	}
	return b.String()
}

// defaultText returns what docs/configuration.md says about a file without the key.
func (e *entry) defaultText() string {
	switch standard := e.standardText(); {
	case e.instead != "":
		return e.instead
	case e.missing != "":
		return "needed"
	case standard != "":
		return "`" + standard + "`"
	}
	return "none"
}

// standardText returns the standard value as in a file.
func (e *entry) standardText() string {
	if e.standard == "" && e.schema()["type"] == "boolean" && e.instead == "" {
		return "false"
	}
	return e.standard
}
