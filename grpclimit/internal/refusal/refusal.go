// Package refusal makes the details of a refusal's error, as messages of google.rpc for gRPC and Connect.
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

// PushbackName is the trailer with the wait before automatic retries of gRPC clients
// (https://github.com/grpc/proposal/blob/master/A6-client-retries.md).
const PushbackName = "grpc-retry-pushback-ms"

// maxPushback is the longest wait in the trailer. A client that retries automatically hangs during this wait. For
// longer waits, the trailer turns off automatic retries, and the call ends at once with the RetryInfo.
const maxPushback = time.Minute

// Pushback returns the value of the trailer [PushbackName], or "" if the trailer is not sent.
func Pushback(res *rpclimit.Result) string {
	if res.Code() != rpclimit.ResourceExhausted {
		return ""
	}
	retry := res.RetryAfter()
	if retry == 0 { // the time is not known
		return ""
	}
	if retry > maxPushback {
		return "-1"
	}
	return strconv.FormatInt(int64((retry+time.Millisecond-1)/time.Millisecond), 10)
}

// Details returns the details of a refused call's error. There is a QuotaFailure with a violation for every refusing
// limit. If it is known when the call could pass, there is also a RetryInfo. If no limit refused the call, Details
// returns nil.
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
