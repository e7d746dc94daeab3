package envoy

import (
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// quotaGroups divides the checks in quota mode into groups. If one check of a group is over the limit, the complete
// group counts as over. Checks whose entries name the same model and backend form a group. Of the other checks, those
// with the same entries form a group. quotaGroups is nil if no check is in quota mode.
type quotaGroups struct {
	names  []string // the group of each check; "" if the check is not in quota mode
	isOver map[string]bool
}

func (s *Service) newQuotaGroups(request *rlsv3.RateLimitRequest, checks []check) *quotaGroups {
	var groups *quotaGroups
	for i := range checks {
		c := &checks[i]
		if !s.isQuotaMode(c) || c.applies && c.limit.Unlimited {
			continue
		}
		if groups == nil {
			groups = &quotaGroups{make([]string, len(checks)), map[string]bool{}}
		}
		name := groupName(request.GetDescriptors()[c.index])
		groups.names[i] = name
		groups.isOver[name] = groups.isOver[name] || c.isRefused()
	}
	return groups
}

func (g *quotaGroups) allOver() bool {
	if g == nil {
		return false
	}
	for _, isOver := range g.isOver {
		if !isOver {
			return false
		}
	}
	return true
}

// groupName returns the name of a descriptor's group. The entries backend_name and model_name_override come from Envoy
// AI Gateway.
func groupName(descriptor *commonv3.RateLimitDescriptor) string {
	var backend, model string
	var text strings.Builder
	for _, entry := range descriptor.GetEntries() {
		switch entry.GetKey() {
		case "backend_name":
			backend = entry.GetValue()
		case "model_name_override":
			model = entry.GetValue()
		}
		text.WriteString(entry.GetKey() + "\x00" + entry.GetValue() + "\x00")
	}
	if backend != "" || model != "" {
		return "model\x00" + backend + "\x00" + model
	}
	return "entries\x00" + text.String()
}

// metadata returns a Struct with the request and the metadata of the rules that admitted it. If several have the same
// key, the first value counts. Structs under the same key are merged.
func metadata(request *rlsv3.RateLimitRequest, checks []check, groups *quotaGroups) *structpb.Struct {
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
	admitted := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	refused := map[int]bool{} // the descriptors that at least one limit refuses
	for i := range checks {
		if checks[i].isRefused() {
			refused[checks[i].index] = true
		}
	}
	for i := range checks {
		c := &checks[i]
		if !c.applies || c.rule == nil || refused[c.index] || groups != nil && groups.isOver[groups.names[i]] {
			continue
		}
		merge(admitted, c.rule.Metadata)
	}
	if len(admitted.GetFields()) > 0 {
		fields["metadata"] = structpb.NewStructValue(admitted)
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
func merge(dst, src *structpb.Struct) {
	for key, value := range src.GetFields() {
		existing, found := dst.Fields[key]
		switch {
		case !found && value.GetStructValue() != nil:
			merged := &structpb.Struct{Fields: map[string]*structpb.Value{}}
			merge(merged, value.GetStructValue())
			dst.Fields[key] = structpb.NewStructValue(merged)
		case !found:
			dst.Fields[key] = value
		case existing.GetStructValue() != nil && value.GetStructValue() != nil:
			merge(existing.GetStructValue(), value.GetStructValue())
		}
	}
}
