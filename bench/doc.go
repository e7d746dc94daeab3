// Package bench compares weir with a floor, which is the minimum that an exact limiter must do for the same keys, and
// with the limiters of other projects.
//
// The program is cmd/weir-bench. The benchmarks of this package measure the same rows and floors one by one, and print
// them in the form that benchstat reads:
//
//	go test -bench Row/allowed-1k -count 6 | benchstat -col /of -
package bench
