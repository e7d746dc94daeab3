package redislimit

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/weir-go/weir/redislimit/internal/script"
)

// errMoves is the error for a group whose slot is moving. The group has taken no tokens.
var errMoves = errors.New("the keys of the request are being moved within the cluster")

// run makes a call for some questions. While a slot moves, it asks about each key in a separate call, and returns
// errMoves for a group.
func (q *queue) run(ctx context.Context, questions []question, answers []script.Answer) error {
	if q.limit == nil {
		groups := make([][]script.Item, len(questions))
		for i, question := range questions {
			groups[i] = question.items
		}
		err := script.RunTogether(ctx, q.redis, groups, answers)
		if isReply(err, "TRYAGAIN") {
			return errMoves
		}
		return err
	}
	keys, asks := make([]string, len(questions)), make([]script.Ask, len(questions))
	for i, question := range questions {
		keys[i], asks[i] = question.items[0].Key, question.items[0].Ask
	}
	err := q.limit.Run(ctx, q.redis, keys, asks, answers)
	if len(keys) == 1 || !isReply(err, "TRYAGAIN") {
		return err
	}
	q.client.calls.Add(int64(len(keys)))
	errs := make([]error, len(keys))
	var calls sync.WaitGroup
	for i := range keys {
		calls.Go(func() {
			errs[i] = q.limit.Run(ctx, q.redis, keys[i:i+1], asks[i:i+1], answers[i:i+1])
		})
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			return err // tokens granted to other keys are lost, as if an answer were lost
		}
	}
	return nil
}

func isReply(err error, kind string) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), kind+" ")
}
