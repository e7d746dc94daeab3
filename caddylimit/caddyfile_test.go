package caddylimit_test

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func adapt(directives string) (string, error) {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte("http://localhost {\n"+directives+"\n}\n"), nil)
	return string(config), err
}

// TestDirectivesAsJSON: Caddy accepts every option of both directives, and orders both before basic_auth.
func TestDirectivesAsJSON(t *testing.T) {
	got, err := adapt(`
		basic_auth {
			someone $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
		}
		weir {
			limit clients {
				match {
					method POST
				}
				match {
					path /a
				}
				key {client_ip} {http.request.header.X}
				rate 10/s
				burst 20
				cost 2
				settle {http.response.header.X-Tokens}
				quota {http.vars.quota}
				ipv4_prefix 24
				ipv6_prefix 56
				shadow
				max_keys 1000
				overflow refuse
			}
			limit windows {
				rate 100/m
				algorithm fixed-window
				aligned
			}
			limit months {
				rate 100/month
				algorithm fixed-window
				zone Europe/Berlin
			}
			limit flights {
				concurrency 8
				local
			}
			limit customers {
				rate 10/s
				quotas {
					file customers.csv
					every 10s
					by {header.X-Key}
					plan free 1/s
					plan paid 9/s 20
					unknown refuse
					max 500
				}
			}
			limit proxied {
				rate 10/s
				quotas {
					header X-RateLimit-Policy
					item all
				}
			}
			limit hashed {
				rate 10/s
				quotas {
					hash plans
				}
			}
			limit plans {
				rate 10/s
				tiers {header.X-Plan} {
					paid 100/s 300
					gold unlimited
					"" 0
				}
				max_wait 2s
				refund_status 404 5xx
				local
			}
			headers ietf legacy
			retry_jitter 3s
			store redis://localhost
			on_loss share
			nodes 3
			share 20%
			timeout 2s
			log_key
			state /dev/shm/weir
		}
		rate_limit {
			zone z {
				match {
					method POST
				}
				key {remote_host}
				window 1d
				events 7
				ipv4_prefix 24
				ipv6_prefix 64
				max_keys 5
			}
			jitter 0.2
			sweep_interval 10s
			log_key
			disable_metrics
			store {env.STORE}
			on_loss closed
			nodes 100
		}`)
	require.NoError(t, err)
	weir := `"handler":"weir","headers":["ietf","legacy"],"limits":[` +
		`{"burst":20,"cost":"2","ipv4_prefix":24,"ipv6_prefix":56,"key":["{http.vars.client_ip}","{http.request.header.X}"],` +
		`"match":[{"method":["POST"]},{"path":["/a"]}],"max_keys":1000,"name":"clients","overflow":"refuse","quota":"{http.vars.quota}","rate":"10/s",` +
		`"settle":"{http.response.header.X-Tokens}","shadow":true},` +
		`{"algorithm":"fixed-window","aligned":true,"name":"windows","rate":"100/m"},` +
		`{"algorithm":"fixed-window","name":"months","rate":"100/month","zone":"Europe/Berlin"},{"concurrency":8,"local":true,"name":"flights"},` +
		`{"name":"customers","quotas":{"by":"{http.request.header.X-Key}","every":10000000000,"file":"customers.csv","max":500,` +
		`"plans":{"free":{"rate":"1/s"},"paid":{"burst":20,"rate":"9/s"}},"unknown":"refuse"},"rate":"10/s"},` +
		`{"name":"proxied","quotas":{"header":"X-RateLimit-Policy","item":"all"},"rate":"10/s"},{"name":"hashed","quotas":{"hash":"plans"},"rate":"10/s"},` +
		`{"local":true,"max_wait":2000000000,"name":"plans","rate":"10/s","refund_status":["404","5xx"],` +
		`"tiers":{"by":"{http.request.header.X-Plan}","values":{"":{"rate":"0"},"gold":{"rate":"unlimited"},"paid":{"burst":300,"rate":"100/s"}}}}],` +
		`"log_key":true,"nodes":3,"on_loss":"share","retry_jitter":3000000000,"share":"20%","state":"/dev/shm/weir","store":"redis://localhost","timeout":2000000000`
	compat := `"disable_metrics":true,"handler":"rate_limit","jitter":0.2,"log_key":true,"nodes":100,"on_loss":"closed","rate_limits":{"z":{` +
		`"ipv4_prefix":24,"ipv6_prefix":64,"key":"{http.request.remote.host}","match":[{"method":["POST"]}],"max_events":7,"max_keys":5,"window":86400000000000}},` +
		`"store":"{env.STORE}","sweep_interval":10000000000`
	assert.Contains(t, got, weir)
	assert.Contains(t, got, compat)
	auth := strings.Index(got, `"handler":"authentication"`)
	assert.Less(t, strings.Index(got, weir), auth)
	assert.Less(t, strings.Index(got, compat), auth)
}

// TestBadDirectives: for a wrong value, the error names the line, the value and the allowed range.
func TestBadDirectives(t *testing.T) {
	weir := func(option string) string { return "weir {\nlimit a {\n" + option + "\n}\n}" }
	zone := func(option string) string { return "rate_limit {\nzone a {\n" + option + "\n}\n}" }
	for directives, want := range map[string]string{
		weir("rate"):                                         "wrong argument count",
		weir("rate 1/s 2/s"):                                 "wrong argument count",
		weir("rate 1/s\nrate 2/s"):                           "rate is given twice",
		weir("burst 0"):                                      `burst "0": want a whole number from 1 to 4294967295`,
		weir("burst 1.5"):                                    `burst "1.5": want a whole number`,
		weir("ipv4_prefix 0"):                                `ipv4_prefix "0": want a whole number from 1 to 32`,
		weir("ipv6_prefix 129"):                              `ipv6_prefix "129": want a whole number from 1 to 128`,
		weir("evnts 1"):                                      `unknown option "evnts" of a limit: want match, key, rate`,
		weir("shadow yes"):                                   "wrong argument count",
		weir("key"):                                          "wrong argument count",
		weir("tiers"):                                        "wrong argument count",
		weir("tiers {header.X} {\npaid\n}"):                  `tier "paid": want a rate, such as 100/m`,
		weir("tiers {header.X} {\npaid 1/s 2 3\n}"):          `tier "paid": want a rate, such as 100/m`,
		weir("tiers {header.X} {\npaid 1/s 0\n}"):            `tier "paid": burst "0": want a whole number from 1 to 4294967295`,
		weir("tiers {header.X} {\npaid 1/s\npaid 2/s\n}"):    `tier "paid" is given twice`,
		weir("quotas a.csv"):                                 "wrong argument count",
		weir("quotas {\nplan\n}"):                            "wrong argument count",
		weir("quotas {\nplan a\n}"):                          `plan "a": want a rate, such as 100/m`,
		weir("quotas {\nplan a 1/s\nplan a 2/s\n}"):          `plan "a" is given twice`,
		weir("quotas {\nplans a 1/s\n}"):                     `unknown option "plans" of quotas: want file, hash, every, by, plan`,
		"weir {\nretry_jitter -1s\n}":                        `retry_jitter "-1s": want a duration above 0`,
		"weir {\nlimits\n}":                                  `unknown option "limits" of weir: want limit`,
		"weir {\nlimit\n}":                                   "wrong argument count",
		zone("window 1m"):                                    `zone "a": want both a window and events`,
		zone("events 1"):                                     `zone "a": want both a window and events`,
		zone("window -1m"):                                   `window "-1m": want a duration above 0`,
		zone("window 0"):                                     `window "0": want a duration above 0`,
		zone("window soon"):                                  `window "soon": want a duration above 0`,
		zone("events 0"):                                     `events "0": want a whole number from 1 to 16777215`,
		zone("events 99999999"):                              `events "99999999": want a whole number from 1 to 16777215`,
		zone("ipv4_prefix 33"):                               `ipv4_prefix "33": want a whole number from 0 to 32`,
		zone("burst 3"):                                      `unknown option "burst" of a zone`,
		"rate_limit {\ndistributed {\nread_interval 0\n}\n}": `read_interval "0": want a duration above 0`,
		"rate_limit {\ndistributed {\nread 5s\n}\n}":         `unknown option "read" of distributed: want read_interval, write_interval or purge_age`,
		"rate_limit {\ndistributed 5s\n}":                    "wrong argument count",
		"rate_limit {\nstorage\n}":                           "wrong argument count",
		"rate_limit {\ndistributed\ndistributed\n}":          "distributed is given twice",
		"rate_limit {\njitter NaN\n}":                        `jitter "NaN": want a number from 0 to 1000`,
		"rate_limit {\nzone a {\nwindow 1s\nevents 1\n}\nzone a {\nwindow 1s\nevents 1\n}\n}": `zone "a" is given twice`,
		"weir {\nstore redis://a\nnodes 0\n}":                                                 `nodes "0": want a whole number from 1 to 100000`,
		"weir {\nstorage file_system\n}":                                                      `unknown option "storage" of weir: want limit, headers, retry_jitter, log_key, state, store, on_loss, nodes, share or timeout`,
		"rate_limit 5":                                                                        "wrong argument count",
	} {
		_, err := adapt(directives)
		assert.ErrorContains(t, err, want, directives)
	}
}
