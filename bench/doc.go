// Package bench compares weir with a floor and with the limiters of other projects. A floor is the minimum that an
// exact limiter must do for the same keys.
//
// The program that makes the comparison is cmd/weir-bench. The benchmarks of this package measure the same rows and
// floors one by one, and print the results in the form that benchstat reads:
//
//	go test -bench Row/allowed-1k -count 6 | benchstat -col /of -
package bench
