// Package budget finds out from outside how a gateway in front of language models counts the tokens of requests and
// answers. It plays both ends: the client of the gateway, and the model behind it (model.go), which reports the cost of
// each answer.
//
// A check spends tokens of a key that has its own budget. Then it sends small requests until one is refused, to find
// out how much is left (measure.go). So the check does not need to trust what the gateway reports. The checks
// (checks.go) cover the pitfalls of docs/budgets.md that can be seen from outside, and the answers in the corpus of
// package usage.
package budget
