// Package budget finds out from outside how a gateway in front of language models counts their tokens. It plays both
// ends: the client of the gateway, and the model behind it (model.go), which reports the cost of each answer.
//
// A check spends tokens of a key that has a budget of its own. It then finds out how much is left, by small requests
// until one is refused (measure.go). So it trusts nothing that the gateway says about itself. The checks (checks.go)
// cover the pitfalls of docs/budgets.md that show from outside, and the corpus of package usage.
package budget
