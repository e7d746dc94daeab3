package envoy

import (
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// quotaGroups divides the asks in quota mode into groups. If one ask of a group is over the limit, the complete group
// counts as over. Asks whose entries name the same model and backend form a group. Of the other asks, those with the
// same entries form a group. quotaGroups is nil if no ask is in quota mode.
type quotaGroups struct {
	of   []string // the group of each ask; "" if the ask is not in quota mode
	over map[string]bool
}

func (s *Service) quotaGroups(request *rlsv3.RateLimitRequest, asks []ask) *quotaGroups {
	var groups *quotaGroups
	for i := range asks {
		a := &asks[i]
		if !s.quota(a) || a.applies && a.limit.Unlimited {
			continue
		}
		if groups == nil {
			groups = &quotaGroups{make([]string, len(asks)), map[string]bool{}}
		}
		name := quotaGroup(request.GetDescriptors()[a.of])
		groups.of[i] = name
		groups.over[name] = groups.over[name] || a.refused()
	}
	return groups
}

func (g *quotaGroups) allOver() bool {
	if g == nil {
		return false
	}
	for _, over := range g.over {
		if !over {
			return false
		}
	}
	return true
}

// quotaGroup returns the name of a descriptor's group. The entries backend_name and model_name_override come from Envoy
// AI Gateway.
func quotaGroup(descriptor *commonv3.RateLimitDescriptor) string {
	var backend, model string
	var all strings.Builder
	for _, entry := range descriptor.GetEntries() {
		switch entry.GetKey() {
		case "backend_name":
			backend = entry.GetValue()
		case "model_name_override":
			model = entry.GetValue()
		}
		all.WriteString(entry.GetKey() + "\x00" + entry.GetValue() + "\x00")
	}
	if backend != "" || model != "" {
		return "model\x00" + backend + "\x00" + model
	}
	return "entries\x00" + all.String()
}

// metadata returns a Struct with the request and the metadata of the rules that admitted it. If several have the same
// key, the first value counts. Structs under the same key are merged.
func metadata(request *rlsv3.RateLimitRequest, asks []ask, groups *quotaGroups) *structpb.Struct {
	descriptors := make([]*structpb.Value, 0, len(request.GetDescriptors()))
	for _, descriptor := range request.GetDescriptors() {
		descriptors = append(descriptors, structpb.NewStructValue(descriptorMetadata(descriptor)))
	}
	fields := map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(request.GetDomain()),
		"descriptors": structpb.NewListValue(&structpb.ListValue{Values: descriptors}),
	}
	if hits := request.GetHitsAddend(); hits != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits))
	}
	passed := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	refused := map[int]bool{} // the descriptors that at least one limit refuses
	for i := range asks {
		if asks[i].refused() {
			refused[asks[i].of] = true
		}
	}
	for i := range asks {
		a := &asks[i]
		if !a.applies || a.rule == nil || refused[a.of] || groups != nil && groups.over[groups.of[i]] {
			continue
		}
		merge(passed, a.rule.Metadata)
	}
	if len(passed.GetFields()) > 0 {
		fields["metadata"] = structpb.NewStructValue(passed)
	}
	return &structpb.Struct{Fields: fields}
}

func descriptorMetadata(descriptor *commonv3.RateLimitDescriptor) *structpb.Struct {
	entries := make([]*structpb.Value, 0, len(descriptor.GetEntries()))
	for _, entry := range descriptor.GetEntries() {
		entries = append(entries, structpb.NewStringValue(entry.GetKey()+"="+entry.GetValue()))
	}
	fields := map[string]*structpb.Value{"entries": structpb.NewListValue(&structpb.ListValue{Values: entries})}
	if limit := descriptor.GetLimit(); limit != nil {
		fields["limit"] = structpb.NewStringValue(limit.String())
	}
	if hits := descriptor.GetHitsAddend(); hits != nil {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits.GetValue()))
	}
	return &structpb.Struct{Fields: fields}
}

// merge copies fields from the second Struct to the first, unless the first has a field with the same name. If both
// fields are Structs, it merges the two. The second Struct belongs to a rule and must not change, so merge copies
// values that may be changed later.
func merge(to, from *structpb.Struct) {
	for key, value := range from.GetFields() {
		have, there := to.Fields[key]
		switch {
		case !there && value.GetStructValue() != nil:
			into := &structpb.Struct{Fields: map[string]*structpb.Value{}}
			merge(into, value.GetStructValue())
			to.Fields[key] = structpb.NewStructValue(into)
		case !there:
			to.Fields[key] = value
		case have.GetStructValue() != nil && value.GetStructValue() != nil:
			merge(have.GetStructValue(), value.GetStructValue())
		}
	}
}
