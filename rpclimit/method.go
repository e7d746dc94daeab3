package rpclimit

import (
	"fmt"
	"strings"
)

// methods has the names in a list. The key is a method, or the beginning that all methods of a service have. The value
// is the name that matches.
type methods map[string]string

// newMethods checks names of the forms "/package.Service/Method" and "/package.Service/*". Errors contain the first
// argument, the name of the calling function.
func newMethods(function string, names []string) (methods, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("rpclimit: %s(): want at least one method, such as /package.Service/Method or /package.Service/*", function)
	}
	m := make(methods, len(names))
	for _, name := range names {
		service, method, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
		if !ok || name[0] != '/' || service == "" || method == "" || strings.Contains(method, "/") ||
			strings.Contains(service, "*") || method != "*" && strings.Contains(method, "*") {
			return nil, fmt.Errorf("rpclimit: %s: %q is not a method: want one such as /package.Service/Method or /package.Service/*", function, name)
		}
		key := strings.TrimSuffix(name, "*")
		if _, duplicate := m[key]; duplicate {
			return nil, fmt.Errorf("rpclimit: %s: %q occurs twice", function, name)
		}
		m[key] = name
	}
	return m, nil
}

// find returns the name that matches a method. If the method and its service both have a name, it returns the method's.
// find does not allocate.
func (m methods) find(method string) (name string, found bool) {
	if name, found = m[method]; found {
		return name, true
	}
	name, found = m[method[:strings.LastIndexByte(method, '/')+1]]
	return name, found
}

// MatchMethods returns a [Limit].Match function. The name "/package.Service/Method" matches one method, and
// "/package.Service/*" matches all methods of a service. Names are case-sensitive, as in servers.
//
// A server that passes calls on ([Call].Unknown) must not rely only on such limits. The reason is that the next server
// may accept another spelling of a method. Also set a limit for all methods, or refuse unknown methods.
func MatchMethods(names ...string) (func(Call) bool, error) {
	patterns, err := newMethods("MatchMethods", names)
	if err != nil {
		return nil, err
	}
	return func(c Call) bool {
		_, found := patterns.find(c.Method)
		return found
	}, nil
}

// MethodCosts returns a [Limit].Cost function. The map costs has a cost for each name, in the form of [MatchMethods].
// The cost of a method takes precedence over the cost of its service. The argument defaultCost is the cost of a method
// that no name matches.
func MethodCosts(costs map[string]uint64, defaultCost uint64) (func(Call) uint64, error) {
	names := make([]string, 0, len(costs))
	byName := make(map[string]uint64, len(costs))
	for name, cost := range costs {
		names, byName[name] = append(names, name), cost
	}
	patterns, err := newMethods("MethodCosts", names)
	if err != nil {
		return nil, err
	}
	return func(c Call) uint64 {
		if name, found := patterns.find(c.Method); found {
			return byName[name]
		}
		return defaultCost
	}, nil
}

// HealthAndReflection is a function for [Skip]. It exempts calls of gRPC's health and reflection services if the server
// itself implements them. Streams of these services, such as the stream of Watch, are then not counted either.
func HealthAndReflection(c Call) bool {
	if c.Unknown {
		return false
	}
	switch c.Method {
	case "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo":
		return true
	}
	return false
}
