// Package budget finds out from outside how a gateway in front of language models counts tokens. It plays both ends: it
// is the client of the gateway, and the model behind it (model.go). As the model, it determines the cost that each
// answer reports.
//
// A check spends tokens of a key that has its own budget. To measure what is left, it sends small requests until one is
// refused (measure.go). So it need not trust the gateway's reports. The checks (checks.go) cover the pitfalls of
// docs/budgets.md that can be seen from outside, and the answers in the corpus of package usage.
package budget
