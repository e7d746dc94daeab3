// Package usagelog reads logs of the costs of requests to language models. It reads lines of JSON, each with a usage in
// the form of any API that package usage knows. It also reads the usage of OpenAI's organizations, as the API returns
// it and as the dashboard exports it. This usage has sums over many requests. A sum is treated as requests of equal
// cost that are evenly spread over the time of the sum.
//
// The requests of a log are kept in memory. Each takes about a hundred bytes.
package usagelog
