package envoy

import (
	"context"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-go/weir/cmd/internal/envoy/kuadrant"
	"github.com/weir-go/weir/cmd/internal/sealed"
)

// A Kuadrant implements Kuadrant's rate limit service on a [Service].
//
// CheckRateLimit reports whether a request would pass, and counts nothing. Report charges a cost, even beyond what is
// left. Reserve takes an estimate of the cost from all limits of a request, or from none. Commit replaces the estimate
// by the actual cost.
type Kuadrant struct{ service *Service }

var _ kuadrant.Server = Kuadrant{}

// Kuadrant returns the implementation of Kuadrant's rate limit service.
func (s *Service) Kuadrant() Kuadrant { return Kuadrant{s} }

// CheckRateLimit implements [kuadrant.Server]. Without a number of hits, it checks for one hit.
func (k Kuadrant) CheckRateLimit(ctx context.Context, r *rlsv3.RateLimitRequest) (response *rlsv3.RateLimitResponse, err error) {
	s := k.service
	err = s.asked(r, marker{}, func(_ *active, asks []ask) error {
		if err := s.lookAll(ctx, asks); err != nil {
			return err
		}
		response = s.answer(r, asks)
		return nil
	})
	return response, err
}

func (s *Service) lookAll(ctx context.Context, asks []ask) error {
	return s.reached(asks, s.each(asks, (*ask).counts, func(a *ask) error { return a.wouldPass(ctx, s.now()) }))
}

// reached returns the error of a store in the form of Kuadrant's service.
func (s *Service) reached(asks []ask, err error) error {
	if s.noteStores(asks, err); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// Report implements [kuadrant.Server].
func (k Kuadrant) Report(ctx context.Context, r *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	s := k.service
	err := s.asked(r, marker{}, func(_ *active, asks []ask) error {
		for i := range asks {
			asks[i].reports = true
		}
		return s.reached(asks, s.count(ctx, asks))
	})
	if err != nil {
		return nil, err
	}
	return &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OK}, nil
}

// Reserve implements [kuadrant.Server]. An amount above a limit takes the complete limit. The amount 0 takes nothing,
// and passes if one hit would pass.
func (k Kuadrant) Reserve(ctx context.Context, r *kuadrant.ReserveRequest) (*kuadrant.ReserveResponse, error) {
	s := k.service
	request, err := s.about(r.GetDomain(), r.GetDescriptors())
	if err != nil {
		return nil, err
	}
	if ttl := r.GetTtl(); ttl != nil && (ttl.CheckValid() != nil || ttl.AsDuration() < 0) {
		return nil, s.refuse(status.Errorf(codes.InvalidArgument, "ttl: %v: want 0s or more", ttl.AsDuration()))
	}
	response := new(kuadrant.ReserveResponse)
	err = s.asked(request, marker{s.reservations.salt[:]}, func(_ *active, asks []ask) error {
		if n := len(asks); n > maxReserved {
			return s.refuse(status.Errorf(codes.InvalidArgument, "a reservation of %d limits: want at most %d", n, maxReserved))
		}
		if err := s.hold(ctx, request, asks, r.GetAmount()); err != nil {
			return err
		}
		if response.Code = s.overall(asks, s.quotaGroups(request, asks)); response.Code != rlsv3.RateLimitResponse_OK {
			return nil
		}
		response.ReservationId = s.reservations.sealer.Seal(parts(asks), s.reservations.uses.Expires(r.GetTtl().AsDuration()))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (s *Service) hold(ctx context.Context, request *rlsv3.RateLimitRequest, asks []ask, amount uint64) error {
	if amount == 0 {
		return s.lookAll(ctx, asks)
	}
	for i := range asks {
		asks[i].hits, asks[i].holds = min(amount, mostHits), true
	}
	err := s.reached(asks, s.countAllOrNothing(ctx, asks))
	s.observe(request, asks, err != nil)
	for i := range asks {
		if asks[i].refused() { // the hits of the other asks were given back
			for j := range asks {
				asks[j].charged = 0
			}
		}
	}
	return err
}

// Commit implements [kuadrant.Server]. Without an id it does what Report does.
func (k Kuadrant) Commit(ctx context.Context, r *kuadrant.CommitRequest) (*kuadrant.CommitResponse, error) {
	s := k.service
	request, err := s.about(r.GetDomain(), r.GetDescriptors())
	if err != nil {
		return nil, err
	}
	var reserved []part
	var opened sealed.Opened
	if r.GetReservationId() != "" {
		if opened, err = s.reservations.sealer.Open(r.GetReservationId()); err == nil {
			reserved, err = read(opened.Receipt)
		} else {
			err = status.Errorf(codes.InvalidArgument, "reservation_id: %v", err)
		}
	}
	if err != nil {
		return nil, s.refuse(err)
	}
	released := false
	// The commit must not end at the client's deadline. If it ended halfway, the id would be used up without counting
	// the cost. The store has its own timeout.
	ctx = context.WithoutCancel(ctx)
	err = s.asked(request, marker{s.reservations.salt[:]}, func(_ *active, asks []ask) error {
		use := sealed.Late
		if opened.Salt != nil {
			var err error
			if use, err = s.reservations.uses.Use(ctx, opened); err != nil {
				return s.reached(nil, err)
			}
		}
		if use == sealed.Repeated {
			return nil
		}
		held := s.commit(asks, reserved, r.GetActualAmount(), use == sealed.First)
		released = use == sealed.First && (held || len(reserved) == 0)
		return s.reached(asks, s.count(ctx, asks))
	})
	if err != nil {
		return nil, err
	}
	return &kuadrant.CommitResponse{ReservationReleased: released}, nil
}

// commit settles each ask's reservation with the actual cost. It charges the part of the cost that exceeds the
// reservation. It gives unused tokens back only if inTime is true. Without a reservation, it charges the complete cost.
// The result held reports whether anything was reserved.
func (s *Service) commit(asks []ask, reserved []part, actual uint64, inTime bool) (held bool) {
	for i := range asks {
		a := &asks[i]
		p, rest, ok := take(reserved, a.mark)
		if held = held || ok; ok && a.counts() && a.table != nil && inTime {
			a.settle(p, actual)
			s.memo.forget(a)
		}
		reserved = rest
		a.reports, a.hits = true, min(actual-min(actual, p.taken), mostHits+1)
		a.applies = a.applies && a.hits > 0
	}
	return held
}

func (s *Service) about(domain string, descriptors []*commonv3.RateLimitDescriptor) (*rlsv3.RateLimitRequest, error) {
	for i, d := range descriptors {
		if d.GetHitsAddend() != nil || d.GetIsNegativeHits() {
			return nil, s.refuse(status.Errorf(codes.InvalidArgument, "descriptor %d has hits of its own: want the amount of the "+
				"request alone", i+1))
		}
	}
	return &rlsv3.RateLimitRequest{Domain: domain, Descriptors: descriptors}, nil
}
