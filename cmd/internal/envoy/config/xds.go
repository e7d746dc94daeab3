package config

import (
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
)

// FromXDS returns the document of an xDS resource. Its positions have no line numbers.
func FromXDS(resource *configv3.RateLimitConfig) *Document {
	return &Document{
		File: resource.GetName(), Domain: resource.GetDomain(), Descriptors: fromXDS(resource.GetDescriptors()),
	}
}

func fromXDS(descriptors []*configv3.RateLimitDescriptor) []Descriptor {
	var result []Descriptor
	for _, d := range descriptors {
		descriptor := Descriptor{
			Key: d.GetKey(), Value: d.GetValue(), ShadowMode: d.GetShadowMode(), QuotaMode: d.GetQuotaMode(),
			DetailedMetric: d.GetDetailedMetric(), Metadata: d.GetMetadata(), Descriptors: fromXDS(d.GetDescriptors()),
		}
		if limit := d.GetRateLimit(); limit != nil {
			rateLimit := &RateLimit{
				Name: limit.GetName(), RequestsPerUnit: limit.GetRequestsPerUnit(), Unlimited: limit.GetUnlimited(),
			}
			descriptor.RateLimits = []*RateLimit{rateLimit}
			if limit.GetUnit() != configv3.RateLimitUnit_UNKNOWN {
				rateLimit.Unit = limit.GetUnit().String()
			}
			for _, replaced := range limit.GetReplaces() {
				rateLimit.Replaces = append(rateLimit.Replaces, replaced.GetName())
			}
		}
		result = append(result, descriptor)
	}
	return result
}
