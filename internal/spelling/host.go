package spelling

import "strings"

// Host returns the name in a Host header, in lower case, without the port and without a dot at its end.
func Host(host string) string {
	// net.SplitHostPort is not used, because it allocates an error for each host without a port.
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') &&
		(host[0] == '[' || strings.Count(host, ":") == 1) {
		host = host[:colon]
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
