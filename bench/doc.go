// Package bench compares weir with other limiters and with a floor, the minimum of work of an exact limiter.
//
// The program cmd/weir-bench makes the comparison. The benchmarks here measure the same rows and floors one by one:
//
//	go test -bench Row/allowed-1k -count 6 | benchstat -col /of -
package bench
