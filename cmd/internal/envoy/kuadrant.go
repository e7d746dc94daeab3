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
	err = s.withChecks(r, marker{}, func(_ *activeConfig, checks []check) error {
		if err := s.peekAll(ctx, checks); err != nil {
			return err
		}
		response = s.answer(r, checks)
		return nil
	})
	return response, err
}

func (s *Service) peekAll(ctx context.Context, checks []check) error {
	return s.storeError(checks, s.forEach(checks, (*check).isCounted, func(c *check) error { return c.wouldPass(ctx, s.now()) }))
}

// storeError counts the errors of stores. It returns err in the form of Kuadrant's service.
func (s *Service) storeError(checks []check, err error) error {
	if s.countStoreErrors(checks, err); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// Report implements [kuadrant.Server].
func (k Kuadrant) Report(ctx context.Context, r *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	s := k.service
	err := s.withChecks(r, marker{}, func(_ *activeConfig, checks []check) error {
		for i := range checks {
			checks[i].isReport = true
		}
		return s.storeError(checks, s.count(ctx, checks))
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
	request, err := s.newRequest(r.GetDomain(), r.GetDescriptors())
	if err != nil {
		return nil, err
	}
	if ttl := r.GetTtl(); ttl != nil && (ttl.CheckValid() != nil || ttl.AsDuration() < 0) {
		return nil, s.serviceError(status.Errorf(codes.InvalidArgument, "ttl: %v: want 0s or more", ttl.AsDuration()))
	}
	response := new(kuadrant.ReserveResponse)
	err = s.withChecks(request, marker{s.reservations.salt[:]}, func(_ *activeConfig, checks []check) error {
		if n := len(checks); n > maxReserved {
			return s.serviceError(status.Errorf(codes.InvalidArgument, "a reservation of %d limits: want at most %d", n, maxReserved))
		}
		if err := s.hold(ctx, request, checks, r.GetAmount()); err != nil {
			return err
		}
		if response.Code = s.overallCode(checks, s.newQuotaGroups(request, checks)); response.Code != rlsv3.RateLimitResponse_OK {
			return nil
		}
		response.ReservationId = s.reservations.sealer.Seal(encodeParts(checks), s.reservations.uses.Expires(r.GetTtl().AsDuration()))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (s *Service) hold(ctx context.Context, request *rlsv3.RateLimitRequest, checks []check, amount uint64) error {
	if amount == 0 {
		return s.peekAll(ctx, checks)
	}
	for i := range checks {
		checks[i].hits, checks[i].isEstimate = min(amount, maxHits), true
	}
	err := s.storeError(checks, s.countAllOrNothing(ctx, checks))
	s.observe(request, checks, err != nil)
	for i := range checks {
		if checks[i].isRefused() { // the hits of the other checks were given back
			for j := range checks {
				checks[j].charged = 0
			}
		}
	}
	return err
}

// Commit implements [kuadrant.Server]. Without an id it does what Report does.
func (k Kuadrant) Commit(ctx context.Context, r *kuadrant.CommitRequest) (*kuadrant.CommitResponse, error) {
	s := k.service
	request, err := s.newRequest(r.GetDomain(), r.GetDescriptors())
	if err != nil {
		return nil, err
	}
	var parts []part
	var opened sealed.Opened
	if r.GetReservationId() != "" {
		if opened, err = s.reservations.sealer.Open(r.GetReservationId()); err == nil {
			parts, err = decodeParts(opened.Receipt)
		} else {
			err = status.Errorf(codes.InvalidArgument, "reservation_id: %v", err)
		}
	}
	if err != nil {
		return nil, s.serviceError(err)
	}
	released := false
	// The commit must not end at the client's deadline. If it ended halfway, the id would be used up without counting
	// the cost. The store has its own timeout.
	ctx = context.WithoutCancel(ctx)
	err = s.withChecks(request, marker{s.reservations.salt[:]}, func(_ *activeConfig, checks []check) error {
		use := sealed.Late
		if opened.Salt != nil {
			var err error
			if use, err = s.reservations.uses.Use(ctx, opened); err != nil {
				return s.storeError(nil, err)
			}
		}
		if use == sealed.Repeated {
			return nil
		}
		hadReservation := s.commit(checks, parts, r.GetActualAmount(), use == sealed.First)
		released = use == sealed.First && (hadReservation || len(parts) == 0)
		return s.storeError(checks, s.count(ctx, checks))
	})
	if err != nil {
		return nil, err
	}
	return &kuadrant.CommitResponse{ReservationReleased: released}, nil
}

// commit settles each check's reservation with the actual cost. It charges the part of the cost that exceeds the
// reservation. It gives unused tokens back only if inTime is true. Without a reservation, it charges the complete cost.
// The result hadReservation reports whether anything was reserved.
func (s *Service) commit(checks []check, parts []part, actualCost uint64, inTime bool) (hadReservation bool) {
	for i := range checks {
		c := &checks[i]
		p, remaining, ok := takePart(parts, c.mark)
		if hadReservation = hadReservation || ok; ok && c.isCounted() && c.table != nil && inTime {
			c.settle(p, actualCost)
			s.memo.forget(c)
		}
		parts = remaining
		c.isReport, c.hits = true, min(actualCost-min(actualCost, p.tokens), maxHits+1)
		c.applies = c.applies && c.hits > 0
	}
	return hadReservation
}

func (s *Service) newRequest(domain string, descriptors []*commonv3.RateLimitDescriptor) (*rlsv3.RateLimitRequest, error) {
	for i, d := range descriptors {
		if d.GetHitsAddend() != nil || d.GetIsNegativeHits() {
			return nil, s.serviceError(status.Errorf(codes.InvalidArgument, "descriptor %d has hits of its own: want the amount of the "+
				"request alone", i+1))
		}
	}
	return &rlsv3.RateLimitRequest{Domain: domain, Descriptors: descriptors}, nil
}
