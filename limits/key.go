package limits

import "github.com/weir-go/weir/engine"

// A KeyFunc returns the key from which a request takes its tokens; false means that the limit does not apply to the
// request. The function makes the key with the [Hasher]:
//
//	func(h limits.Hasher, job *Job) (engine.Key, bool) {
//		return h.KeyUint64(job.Tenant), job.Tenant != 0
//	}
//
// The function is called at most twice for each request and limit, from any goroutine. It must not change the request.
type KeyFunc[R any] func(h Hasher, r R) (engine.Key, bool)

// Text returns the key of a request as text that people can read and a [Source] uses, such as "ip:192.0.2.1" or
// "number:7". It allocates. The text may contain a secret of the client.
func (f KeyFunc[R]) Text(r R) (text string, limited bool) {
	var rec record
	_, limited = f(Hasher{record: &rec}, r)
	if !limited {
		return "", false
	}
	return string(rec.text), true
}

// Or returns the key that f returns, or false if f is nil.
func (f KeyFunc[R]) Or(h Hasher, r R) (engine.Key, bool) {
	if f == nil {
		return engine.Key{}, false
	}
	return f(h, r)
}

// Everyone is the [KeyFunc] of a global limit: all requests have one key.
func Everyone[R any](h Hasher, _ R) (engine.Key, bool) { return h.KeyUint64(0), true }

// Join returns a [KeyFunc] whose key has several parts, for example for a limit per user and path. The key contains the
// kind and the length of each part, so ("a", "bc") and ("ab", "c") differ. If one part returns false, the limit does
// not apply to the request. Join does not allocate for a request.
//
// A part that does not make its key with its [Hasher] counts as the empty text.
func Join[R any](parts ...KeyFunc[R]) KeyFunc[R] {
	if len(parts) == 1 {
		return parts[0]
	}
	return func(h Hasher, r R) (engine.Key, bool) {
		return h.Join(len(parts), func(h Hasher, i int) bool {
			_, limited := parts[i].Or(h, r)
			return limited
		})
	}
}
