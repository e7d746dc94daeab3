// Package usagelog reads logs of the costs of requests to language models. It reads lines of JSON, each with a usage in
// the form of any API that package usage knows. It also reads the usage of OpenAI's organizations, as the API returns
// it and as the dashboard exports it. These are sums over many requests; a sum is treated as requests of equal cost,
// evenly spread over the time of the sum.
//
// The requests of a log are kept in memory, about a hundred bytes each.
package usagelog
