package redislimit

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// run makes a call for some keys. While their slot moves from one node of a cluster to another, each node has
// some of the keys, and both decline a call for several without carrying it out. Then each key is asked for by a
// call of its own, and the node that has it answers.
func (q *queue) run(ctx context.Context, keys []string, asks []script.Ask, answers []script.Answer) error {
	err := q.limit.Run(ctx, q.redis, keys, asks, answers)
	if len(keys) == 1 || !isReply(err, "TRYAGAIN") {
		return err
	}
	q.client.calls.Add(int64(len(keys)))
	errs := make([]error, len(keys))
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			errs[i] = q.limit.Run(ctx, q.redis, keys[i:i+1], asks[i:i+1], answers[i:i+1])
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err // what the other keys were granted is stranded, as when an answer is lost
		}
	}
	return nil
}

// isReply reports whether an error is one that the store answered, of a kind such as TRYAGAIN.
func isReply(err error, kind string) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), kind+" ")
}
