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
		"test": table(new(Test).section(nil)), "expect": table(new(Test).expectSection(nil)),
	}
}

func table(s section) string {
	var b strings.Builder
	b.WriteString("| key | what it says | default | range |\n|---|---|---|---|\n")
	for _, e := range s.entries {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.name, e.help, e.defaultCell(), e.rangeText)
	}
	if s.hasExtensions {
		fmt.Fprintf(&b, "| `%s` | anything: weir ignores keys with this prefix | | |\n", extensionKeys)
	}
	return b.String()
}

// defaultCell returns the text in the column default of docs/configuration.md.
func (e *entry) defaultCell() string {
	switch value := e.defaultText(); {
	case e.defaultNote != "":
		return e.defaultNote
	case e.requiredHint != "":
		return "needed"
	case value != "":
		return "`" + value + "`"
	}
	return "none"
}

// defaultText returns the default as a file would write it.
func (e *entry) defaultText() string {
	if e.defaultValue == "" && e.schema()["type"] == "boolean" && e.defaultNote == "" {
		return "false"
	}
	return e.defaultValue
}
