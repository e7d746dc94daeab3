package replay

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// byHeld has rules that each read something that is only in the logs of some formats.
const byHeld = `rules:
- {name: host, rate: 1/h, match: {host: a.example}}
- {name: by-host, rate: 1/h, key: host}
- {name: api-key, rate: 1/h, key: header:X-Api-Key}
- {name: cookie, rate: 1/h, key: cookie:sid}
- {name: agent, rate: 1/h, match: {header: {User-Agent: "curl/8"}}}
- {name: tiers, rate: 1/h, tiers: {header: X-Plan, values: {gold: {rate: 2/h}}}}
`

// TestRulesAreJudgedByWhatTheLogHolds: a rule is judged only if the format of the log has everything that the rule
// reads.
func TestRulesAreJudgedByWhatTheLogHolds(t *testing.T) {
	nginx := func(more string) string {
		return `{"time":"1795165201","remote_addr":"h","request":"GET / HTTP/1.1","status":200` + more + "}\n"
	}
	caddy := func(headers string) string {
		return fmt.Sprintf(`{"ts":1,"status":200,"request":{"client_ip":"h","method":"GET","uri":"/",`+
			`"host":"a.example","headers":{%s}}}`+"\n",
			headers)
	}
	const alb = `http 2018-07-02T22:23:00Z app/lb 192.0.2.39:2817 10.0.0.1:80 0 0 0 200 200 34 366 ` +
		`"GET http://a.example:80/ HTTP/1.1" "curl/8"`
	cases := map[string]struct {
		log     string
		matched map[string]uint64 // requests that match, for each rule that is judged
	}{
		"common":   {`h - - [01/Jan/1970:00:00:01 +0000] "GET / HTTP/1.1" 200 1`, map[string]uint64{"tiers": 1}},
		"combined": {logLine("h", 0, "GET / HTTP/1.1", "200"), map[string]uint64{"agent": 0, "tiers": 1}},
		"vhost_combined": {"a.example:443 " + logLine("h", 0, "GET / HTTP/1.1", "200"),
			map[string]uint64{"host": 1, "by-host": 1, "agent": 0, "tiers": 1}},
		"alb": {alb, map[string]uint64{"host": 1, "by-host": 1, "agent": 1, "tiers": 1}},
		"nginx, with headers that were not sent": {nginx(`,"http_x_api_key":"","http_cookie":"sid=1","http_user_agent":"curl/8"`),
			map[string]uint64{"api-key": 1, "cookie": 1, "agent": 1, "tiers": 1}},
		"nginx, with a host": {nginx(`,"host":"b.example"`), map[string]uint64{"host": 0, "by-host": 1, "tiers": 1}},
		"caddy": {caddy(`"X-Api-Key":["k"],"User-Agent":["curl/8"]`),
			map[string]uint64{"host": 1, "by-host": 1, "api-key": 1, "agent": 1, "tiers": 1}},
		"caddy, with secrets": {caddy(`"X-Api-Key":["REDACTED"],"Cookie":["sid=1"]`),
			map[string]uint64{"host": 1, "by-host": 1, "cookie": 1, "agent": 0, "tiers": 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := runRules(t, byHeld, c.log, RulesOptions{})
			judged := map[string]uint64{}
			for i := range r.Rules {
				if rule := &r.Rules[i]; rule.Blind == "" {
					judged[rule.Rule.Name] = rule.Matched
				}
			}
			assert.Equal(t, c.matched, judged)
		})
	}
}

func TestTheHostOfTheLogGoesBeforeTheGivenOne(t *testing.T) {
	log := "a.example:443 " + logLine("h", 0, "GET / HTTP/1.1", "200") +
		"b.example:443 " + logLine("h", 0, "GET / HTTP/1.1", "200")
	r := runRules(t, byHeld, log, RulesOptions{Host: "a.example"})
	assert.Equal(t, uint64(1), r.Rules[0].Matched)
	assert.Equal(t, uint64(2), r.Rules[1].Keys)
}

func TestTiersOfALogThatHoldsTheirHeader(t *testing.T) {
	line := func(client, plan string) string {
		return fmt.Sprintf(`{"time":"1795165201","remote_addr":"%s","request":"GET / HTTP/1.1","status":200,`+
			`"http_x_plan":"%s"}`+"\n",
			client, plan)
	}
	log := line("a", "gold") + line("a", "gold") + line("b", "") + line("b", "")
	const rule = `rules: [{name: a, rate: 1/h, burst: 1, tiers: {header: X-Plan, values: {gold: {burst: 2}}}}]`
	r := runRules(t, rule, log, RulesOptions{})
	assert.Empty(t, r.Rules[0].Notes)
	assert.Equal(t, []Key{{"b", 2, 1}}, r.Rules[0].RefusedKeys)
}
