// A client of `weir serve` that uses commands of Redis, in this example with go-redis. (A Go program on the same
// machine can use the engine instead.) docs/redis-door.md describes the commands, and README.md says how to try it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	door := flag.String("door", "127.0.0.1:6380", "`address` of weir's listener for clients of Redis")
	flag.Parse()
	client := redis.NewClient(&redis.Options{Addr: *door})
	defer client.Close()

	for range 7 {
		allowed, wait, err := throttle(context.Background(), client, "user123")
		if err != nil {
			log.Fatal(err)
		}
		if allowed {
			fmt.Println("allowed")
		} else {
			fmt.Println("refused, again in", wait)
		}
	}
}

// throttle takes one token from a key that gets ten tokens per minute, with a burst of five. If no token is available,
// it returns how long to wait.
func throttle(ctx context.Context, client *redis.Client, key string) (allowed bool, wait time.Duration, err error) {
	const beyondTheFirst, count, period = 4, 10, 60 // the burst of five is the first token and four more
	answer, err := client.Do(ctx, "CL.THROTTLE", key, beyondTheFirst, count, period).Int64Slice()
	if err != nil {
		return false, 0, err
	}
	// The answer has five numbers: limited (0 or 1), limit, remaining, and the seconds until a retry and until the
	// reset. The seconds until a retry are -1 if the token was taken.
	return answer[0] == 0, time.Duration(max(answer[3], 0)) * time.Second, nil
}
