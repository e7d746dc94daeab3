// Package budget finds out from outside how a gateway in front of language models counts their tokens. It is both ends
// of it: the client of the gateway, and the model behind it (model.go), which says what each answer costs.
//
// A check gives a key with a budget of its own something to pay for, and then finds out how much is left, by small
// requests until one is refused (measure.go). So nothing that the gateway says of itself is trusted. The checks
// (checks.go) are those of the pitfalls of docs/budgets.md that show from outside, and the corpus of package usage.
package budget
