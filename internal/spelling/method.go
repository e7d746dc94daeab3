package spelling

import "net/http"

// MethodFields are header fields with a method that replaces the request's method. Rails, Laravel, Symfony, ASP.NET,
// and Express with method-override read them.
var MethodFields = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// MethodOverrides returns the values of a request's [MethodFields]. If there are no such fields, it does not allocate.
func MethodOverrides(h http.Header) (methods []string) {
	for _, name := range MethodFields {
		for _, value := range h[name] {
			if value = TrimBlanks(value); value != "" {
				methods = append(methods, value)
			}
		}
	}
	return methods
}
