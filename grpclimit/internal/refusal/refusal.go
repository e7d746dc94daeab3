// Package refusal says what a refused call is told, in the messages of google.rpc, for every framework that has them.
package refusal

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits"
	"github.com/weir-go/weir/rpclimit"
)

// PushbackName is the name of the trailer that tells the retries which gRPC clients make by themselves when to come
// back (https://github.com/grpc/proposal/blob/master/A6-client-retries.md).
const PushbackName = "grpc-retry-pushback-ms"

// longestPushback is the longest wait that retries are told. A client's call hangs meanwhile, so for more they are
// turned off, and the call ends at once with the RetryInfo.
const longestPushback = time.Minute

// Pushback returns the value of that trailer; "" if there is nothing to say.
func Pushback(res *rpclimit.Result) string {
	if res.Code() != rpclimit.ResourceExhausted {
		return ""
	}
	retry := res.RetryAfter()
	if retry == 0 { // it is not known
		return ""
	}
	if retry > longestPushback {
		return "-1"
	}
	return strconv.FormatInt(int64((retry+time.Millisecond-1)/time.Millisecond), 10)
}

// Details returns what an error of a refused call carries: a RetryInfo, if it is known when it could pass, and a
// QuotaFailure with a violation for every limit that refused it. It is nil if the call was not refused by limits.
func Details(res *rpclimit.Result) (details []protoadapt.MessageV1) {
	if res.Code() != rpclimit.ResourceExhausted {
		return nil
	}
	if retry := res.RetryAfter(); retry > 0 && retry != engine.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	failure := &errdetails.QuotaFailure{}
	for i := range res.Len() {
		c := res.Check(i)
		if c.Outcome != limits.Refused {
			continue
		}
		failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{
			Subject:     "limit:" + c.Name(),
			Description: fmt.Sprintf("limit %q of %d: %d asked for, %d left", c.Name(), c.Decision.Limit, c.N, c.Decision.Remaining),
			QuotaId:     c.Name(),
			QuotaValue:  int64(min(c.Decision.Limit, math.MaxInt64)),
		})
	}
	return append(details, failure)
}
