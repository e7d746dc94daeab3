// Package usagelog reads what requests to language models have cost: from lines of JSON, of which each has the usage in
// the form of any API that package usage knows, and from the usage of OpenAI's organizations, as its API answers it and
// as its dashboard exports it. The latter has sums of many requests: these are taken for requests of the same cost,
// evenly spread over the time of the sum.
//
// The requests of a log are kept in memory, some hundred bytes each.
package usagelog
