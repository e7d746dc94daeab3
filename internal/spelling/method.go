package spelling

import "net/http"

// MethodOverrides returns what a request has in the fields that frameworks take for its method: those of Rails,
// Laravel, Symfony, ASP.NET, and of method-override for Express. It does not allocate where there is none.
func MethodOverrides(h http.Header) (methods []string) {
	for _, name := range [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"} {
		for _, value := range h[name] {
			if value = TrimBlanks(value); value != "" {
				methods = append(methods, value)
			}
		}
	}
	return methods
}
