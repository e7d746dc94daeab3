package config

import (
	"fmt"
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-go/weir/engine"
	"github.com/weir-go/weir/limits/spec"
)

// The field unit_multiplier is a google.protobuf.UInt32Value. Its number is multiplierField in the limit of a
// descriptor, and multiplierAnswerField in the limit of an answer. Versions of go-control-plane that know the field
// need Go 1.26. So here it is handled as an unknown field.
const (
	multiplierField       protowire.Number = 3
	multiplierAnswerField protowire.Number = 4
)

// Override returns the limit that a request carries instead of a rule's limit. The error names the field, its value and
// the range.
func Override(override *commonv3.RateLimitDescriptor_RateLimitOverride) (Limit, error) {
	multiplier, err := multiplierOf(override.ProtoReflect().GetUnknown())
	if err != nil {
		return Limit{}, err
	}
	unit := Unit(override.GetUnit())
	if unit <= unknownUnit || int(unit) >= len(lengths) {
		return Limit{}, fmt.Errorf("unit %d: want 1 to %d", unit, Units)
	}
	length, ok := windowLength(unit, multiplier)
	if !ok {
		return Limit{}, fmt.Errorf("unit_multiplier %d of a %s: want 1 to %d, which is 365 days", multiplier,
			strings.ToLower(unit.String()), spec.MaxWindow/lengths[unit])
	}
	return Limit{
		Algorithm: engine.AlgorithmFixedWindow, Requests: override.GetRequestsPerUnit(), Window: length, Unit: unit,
		Multiplier: multiplier,
	}, nil
}

// multiplierOf reads unit_multiplier from unknown fields. The result is 1 if the field is absent. Repeated fields are
// merged, as protobuf merges messages.
func multiplierOf(fields []byte) (uint32, error) {
	value, found := &wrapperspb.UInt32Value{}, false
	for len(fields) > 0 {
		number, kind, n := protowire.ConsumeTag(fields)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, fields[n:])
		if size < 0 {
			return 0, protowire.ParseError(size)
		}
		if number == multiplierField && kind == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(fields[n:])
			if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(text, value); err != nil {
				return 0, fmt.Errorf("unit_multiplier: %w", err)
			}
			found = true
		}
		fields = fields[n+size:]
	}
	if !found {
		return 1, nil
	}
	return value.GetValue(), nil
}

// EncodedMultiplier returns the encoded field that reports the multiplier of a limit to the client. It is nil for the
// multiplier 1.
func (l Limit) EncodedMultiplier() []byte {
	if l.Multiplier <= 1 {
		return nil
	}
	value := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(l.Multiplier))
	return protowire.AppendBytes(protowire.AppendTag(nil, multiplierAnswerField, protowire.BytesType), value)
}
