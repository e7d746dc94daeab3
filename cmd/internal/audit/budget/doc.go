// Package budget finds out from outside how a gateway in front of language models counts tokens. It plays both ends:
// the client of the gateway, and the model behind it (model.go), which reports the cost of each answer.
//
// A check spends tokens of a key with its own budget. It then measures what is left by small requests until one is
// refused (measure.go), so it need not trust the gateway's reports. The checks (checks.go) cover the pitfalls of
// docs/budgets.md that can be seen from outside, and the answers in the corpus of package usage.
package budget
