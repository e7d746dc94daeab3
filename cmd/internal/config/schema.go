package config

import (
	"encoding/json"
	"math"

	"github.com/weir-go/weir/atomicbucket"
	"github.com/weir-go/weir/cmd/internal/admin"
	"github.com/weir-go/weir/cmd/internal/limit"
)

// A schema is a JSON Schema (draft 07, which editors know).
type schema map[string]any

// Schema returns the JSON Schema of rule files, for editors. It knows every key, choice and range; what is between
// keys, such as a burst of a window, [Parse] alone finds.
func Schema() ([]byte, error) {
	s := object("A rule file of weir", properties{
		"listen":          manyOr(ref("address"), listenerSchema()),
		"admin":           anyOf(ref("address"), adminSchema()),
		"decide":          anyOf(ref("address"), need(object("Where other proxies ask", addressOf()), "address")),
		"redis":           anyOf(ref("address"), redisSchema()),
		"upstream":        ref("upstream"),
		"routes":          many(need(object("", routeProperties()), "match", "upstream")),
		"trusted_proxies": many(text("An address, or a range of them")),
		"client_ip": object("Where the client's address is found", properties{
			"from":        pattern("Believed of trusted_proxies only", "^(x-forwarded-for|forwarded|socket|header:.+)$"),
			"ipv4_prefix": whole(1, 32, 32), "ipv6_prefix": whole(1, 128, IPv6Prefix),
		}),
		"ambiguous_paths": oneOfWords(ambiguousPaths, AmbiguousMatch),
		"headers":         oneOfWords(headerStyles, HeadersIETF),
		"response": object("How a refusal looks", refusalSchema(properties{
			"body": oneOfWords(bodies, BodyProblem), "retry_jitter": duration("0s"),
		})),
		"cors": need(object("Which pages of other origins may read answers", properties{
			"origins": many(pattern("https://app.example.com, https://*.example.com, or *", `^(\*|[A-Za-z][A-Za-z0-9+.-]*://[^/?#]+)$`)),
			"methods": many(pattern("In capitals", "^[^a-z]+$")), "headers": many(text("Of requests; any if it is left out")),
			"expose": many(text("Of answers, beside those of limits")), "credentials": yes(), "max_age": duration("10m"),
		}), "origins"),
		"server": serverSchema(),
		"log": object("What is logged, and how", properties{
			"format": oneOfWords(logFormats, LogText), "level": oneOfWords(logLevels, "info"),
			"access": sampleSchema(), "refusals": sampleSchema(),
		}),
		"exempt": many(ref("exception")),
		"store":  anyOf(text("redis://host:port"), storeSchema()),
		"state":  pattern("A folder in which limits outlive the process", "^/"),
		"rules":  many(ruleSchema(), "The limits"),
		"tests":  many(testSchema(), "What the file is expected to answer"),
	})
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["anyOf"] = []schema{{"required": []string{"rules"}}, {"required": []string{"redis"}}}
	s["patternProperties"] = schema{"^x-": true}
	s["definitions"] = properties{
		"address": addressSchema(), "mode": modeSchema(), "duration": durationSchema(), "upstream": upstreamSchema(),
		"match": matchSchema(nil), "exception": matchSchema(exceptionMatch()),
	}
	out, err := json.MarshalIndent(s, "", "  ")
	return append(out, '\n'), err
}

type properties map[string]schema

// object is a mapping with these keys and no others.
func object(description string, p properties) schema {
	return described(schema{"type": "object", "properties": p, "additionalProperties": false}, description)
}

func described(s schema, description string) schema {
	if description != "" {
		s["description"] = description
	}
	return s
}

func need(s schema, keys ...string) schema {
	s["required"] = keys
	return s
}

// many is one value, or a list of them that is not empty.
func many(item schema, description ...string) schema {
	s := anyOf(item, schema{"type": "array", "items": item, "minItems": 1})
	if len(description) > 0 {
		s["description"] = description[0]
	}
	return s
}

func manyOr(items ...schema) schema { return many(anyOf(items...)) }

func anyOf(all ...schema) schema { return schema{"anyOf": all} }

// text is any single value, which is read as it is written.
func text(description string) schema {
	return described(schema{"type": []string{"string", "number", "boolean"}}, description)
}

func pattern(description, p string) schema {
	return described(schema{"type": "string", "pattern": p}, description)
}

func oneOfWords[T ~string](all []T, standard T) schema {
	return schema{"enum": all, "default": standard}
}

func whole(low, high, standard uint64) schema {
	s := schema{"type": "integer", "minimum": low, "maximum": high}
	if standard >= low {
		s["default"] = standard
	}
	return s
}

func yes() schema { return schema{"type": "boolean", "default": false} }

// duration is a time with its unit.
func duration(standard string) schema {
	if standard == "" {
		return ref("duration")
	}
	return schema{"allOf": []schema{ref("duration")}, "default": standard}
}

// durationSchema is what a duration refers to. Only 0 needs no unit.
func durationSchema() schema {
	const part = `([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`
	return anyOf(pattern("A time with its unit: 500ms, 10s, 1h30m", `^(\+?(`+part+`)+|0)$`), schema{"const": 0})
}

// ref stands for a definition of the schema.
func ref(name string) schema { return schema{"$ref": "#/definitions/" + name} }

// size is a number of bytes, with a unit or without.
func size(standard string) schema {
	s := anyOf(schema{"type": "integer", "minimum": 0}, pattern("A size: 64KiB", `^[0-9][0-9.,]* *[A-Za-z]*$`))
	s["default"] = standard
	return s
}

func addressSchema() schema {
	return pattern("host:port, or unix:/path", `^(unix:/.+|[^/]*:[0-9]{1,5})$`)
}

func modeSchema() schema {
	return anyOf(schema{"type": "integer", "minimum": 0o200, "maximum": 777},
		pattern("Octal digits: 660", "^(0o?)?[2367][0-7]{2}$"))
}

// addressOf are the properties of what has an address and no more.
func addressOf() properties {
	return properties{"address": ref("address"), "mode": ref("mode"), "reuse_port": yes()}
}

func routeProperties() properties {
	return properties{"match": ref("match"), "upstream": ref("upstream")}
}

func listenerSchema() schema {
	return need(object("", properties{
		"address": ref("address"), "mode": ref("mode"), "h2c": yes(), "proxy_protocol": yes(),
		"reuse_port": yes(), "tls": tlsSchema(),
	}), "address")
}

func tlsSchema() schema {
	return need(object("Two PEM files", properties{"cert": text(""), "key": text("")}), "cert", "key")
}

func redisSchema() schema {
	return need(object("Where clients of Redis ask", properties{
		"address": ref("address"), "mode": ref("mode"), "tls": tlsSchema(), "allow_remote": yes(),
		"password_file": text("A file with a password on each line"),
		"password_env":  pattern("The name of a variable of the environment", "^[A-Za-z_][A-Za-z0-9_]*$"),
		"longest":       duration("624h"), "max_keys": whole(1, math.MaxInt32, 1_000_000),
		"overflow": oneOfWords(overflows, overflows[0]), "idle_timeout": duration("0s"), "reuse_port": yes(),
	}), "address")
}

func adminSchema() schema {
	return need(object("Metrics and the live page", properties{
		"address": ref("address"), "mode": ref("mode"), "allow_remote": yes(), "pprof": yes(),
		"keys": oneOfWords(admin.AllKeys, admin.KeysHashed), "hosts": many(text("A name by which the page may be asked")),
	}), "address")
}

func upstreamSchema() schema {
	url := many(pattern("http://host:port, https://host or unix:/path", "^([Hh][Tt][Tt][Pp][Ss]?://.+|unix:/.+)$"))
	path := pattern("The path of a page that says whether the server is well", "^/")
	return anyOf(url, need(object("The server that requests go to", properties{
		"url": url, "connect_timeout": duration("10s"), "response_timeout": duration("1m"), "keep_host": yes(), "h2c": yes(),
		"ignore_client_abort": yes(),
		"health": anyOf(path, need(object("", properties{
			"path": path, "interval": duration("10s"), "timeout": duration("2s"), "passes": whole(1, 100, 2),
			"fails": whole(1, 100, 3),
		}), "path")),
		"pass_headers": many(text("A field that is passed on although it can mislead servers")),
	}), "url"))
}

func serverSchema() schema {
	return object("What clients may hold", properties{
		"read_header_timeout": duration("10s"), "read_timeout": duration("0s"), "write_timeout": duration("0s"),
		"idle_timeout": duration("2m"), "shutdown_timeout": duration("10s"), "shutdown_delay": duration("0s"),
		"max_header_bytes": size("64KiB"), "max_connections": schema{"type": "integer", "minimum": 0, "maximum": 1 << 30},
		"max_connections_per_client": schema{"type": "integer", "minimum": 0, "maximum": 1 << 30}, "send_timeout": duration("1m"),
		"max_waiting": whole(1, 1<<20, 1000), "min_body_rate": size("240"),
	})
}

func sampleSchema() schema {
	s := pattern("none, all, or one in so many: 1/100", "^(none|all|1/[1-9][0-9]{0,6})$")
	s["default"] = "none"
	return s
}

func storeSchema() schema {
	return need(object("Where limits are kept together with other machines", properties{
		"url": pattern("", "^[Rr][Ee][Dd][Ii][Ss][Ss]?://.+"), "prefix": text("What all keys in the store begin with"),
		"timeout": duration("50ms"), "nodes": whole(1, 100_000, 4),
		"on_loss": oneOfWords(failurePolicies, failurePolicies[0]),
		"share":   pattern("", "^[0-9]+%$"), "mode": oneOfWords(storeModes, storeModes[0]), "partitions": whole(1, 4096, 64),
		"keys": oneOfWords(storedKeys, storedKeys[0]), "secret": text("16 characters and more"),
		"ca": text("A PEM file"), "certificate": text("A PEM file"), "certificate_key": text("A PEM file"),
		"password_file": text("A file with a password"),
	}), "url")
}

// matchSchema is a match of a route, with more keys perhaps.
func matchSchema(more properties) schema {
	fields := func(what string) schema {
		return described(schema{"type": "object", "additionalProperties": many(text("A value, or \"*\" for any"))}, what)
	}
	all := properties{
		"host": many(text("A name without port, or *.example.com")),
		"path": manyOr(pattern("A pattern: /login, /static/, /users/{id}, /files/{rest...}, /{$}", "^/[^?#*]*$"),
			need(object("All paths that begin with a text", properties{"prefix": pattern("Such as /login", "^/[^?#%]*$")}), "prefix"),
			need(object("All paths that an expression in the syntax of RE2 matches", properties{"regex": text("Such as ^/users/[0-9]+$")}), "regex")),
		"method": many(pattern("In capitals", "^[^a-z]+$")), "header": fields("Headers, by name"),
	}
	for name, s := range more {
		if name == "query" {
			s = fields("Parameters of the query, by name")
		}
		all[name] = s
	}
	s := object("Which requests are meant; all parts must hold", all)
	s["minProperties"] = 1
	return s
}

// exceptionMatch is what the match of an exception has beside that of a route.
func exceptionMatch() properties {
	return properties{"client": many(text("An address, or a range of them")), "query": nil}
}

func ruleMatchSchema() schema {
	more := exceptionMatch()
	more["not"] = many(ref("exception"))
	more["case"] = oneOfWords(letterCases, letterCases[0])
	more["extension"] = oneOfWords(extensions, extensions[0])
	return matchSchema(more)
}

func ruleSchema() schema {
	rate := anyOf(pattern("So many in a period: 100/s, 10/m, 5000/h; 0; unlimited",
		`^([0-9.]+ */ *([0-9.]*[a-zµμ]*[smhd])+|unlimited|0)$`), schema{"const": 0})
	burst := whole(1, most, 0)
	s := need(object("", properties{
		"name":        schema{"type": []string{"string", "number", "boolean"}, "pattern": "^[-A-Za-z0-9_.]{1,64}$"},
		"match":       ruleMatchSchema(),
		"key":         keySchema(),
		"concurrency": described(whole(1, atomicbucket.MaxInFlight, 0), "So many requests at a time; beside a rate a rule of its own"),
		"algorithm":   oneOfWords(limit.Names(), limit.Names()[0]),
		"rate":        rate,
		"burst":       burst,
		"aligned":     yes(),
		"tiers": need(object("Other limits for some values of a header", properties{
			"header": text(""),
			"values": schema{"type": "object", "minProperties": 1, "additionalProperties": schema{
				"type": "object", "properties": properties{"rate": rate, "burst": burst, "concurrency": whole(1, atomicbucket.MaxInFlight, 0)}, "additionalProperties": false,
				"minProperties": 1,
			}},
		}), "header", "values"),
		"max_wait": duration(""),
		"cost": anyOf(whole(1, most, 1), need(object("The number in a header", properties{
			"header": text(""), "default": whole(1, most, 1), "max": whole(1, most, 0),
		}), "header", "max")),
		"refund_status": many(anyOf(schema{"type": "integer", "minimum": 100, "maximum": 599},
			pattern("", "^([1-5]xx|[1-5][0-9][0-9])$"))),
		"response": object("How a refusal of this rule looks", refusalSchema(properties{})),
		"shadow":   yes(), "spread": yes(), "max_keys": whole(1, math.MaxInt32, 1_000_000), "overflow": oneOfWords(overflows, overflows[0]),
		"store": schema{"type": "boolean"},
	}), "name")
	s["anyOf"] = []schema{{"required": []string{"rate"}}, {"required": []string{"concurrency"}}}
	return s
}

func keySchema() schema {
	s := many(pattern("ip, header:NAME, cookie:NAME, query:NAME, path, method, host or global; A or B",
		"^ *(ip|path|method|host|global|(header|cookie|query):.+) *( or .*)?$"))
	s["default"] = "ip"
	return s
}

// refusalSchema adds the keys of a refusal.
func refusalSchema(p properties) properties {
	p["status"] = schema{"type": "integer", "minimum": 400, "maximum": 599, "default": 429}
	p["headers"] = schema{"type": "object", "additionalProperties": text("")}
	p["content_type"] = described(schema{"type": "string", "default": plainText}, "Of the template")
	p["template"] = text("The body: a template of Go, with .Rule, .Status, .Limit, .Remaining, .RetryAfter and .Never")
	return p
}

// testSchema is a request, and what is expected of it.
func testSchema() schema {
	status := func() schema { return schema{"type": "integer", "minimum": 200, "maximum": 599} }
	return need(object("", properties{
		"request": pattern("Method and target: GET /login", `^[^ ]+ [^ ]+$`),
		"client":  text("The address of the client"),
		"headers": schema{"type": "object", "additionalProperties": many(text(""))},
		"answer":  described(status(), "What the upstream answers"),
		"expect": object("", properties{
			"rules":  anyOf(many(text("")), schema{"type": "array", "maxItems": 0}),
			"status": status(), "times": whole(1, maxTimes, 1), "then": status(),
		}),
	}), "request", "expect")
}
