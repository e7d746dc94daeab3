package config

import (
	"time"

	"go.yaml.in/yaml/v4"
)

// The fields of single values. Messages name the value by its key.

func (d *decoder) durationField(name string, low, high time.Duration, into *time.Duration) field {
	return field{name, func(n *yaml.Node) { d.duration(n, name, low, high, into) }}
}

func (d *decoder) integerField(name string, low, high int, into *int) field {
	return field{name, func(n *yaml.Node) { d.integer(n, name, low, high, into) }}
}

func (d *decoder) numberField(name string, low, high uint64, into *uint64) field {
	return field{name, func(n *yaml.Node) { d.number(n, name, low, high, into) }}
}

func (d *decoder) bytesField(name string, low, high uint64, into *int) field {
	return field{name, func(n *yaml.Node) { d.bytes(n, name, low, high, into) }}
}

func (d *decoder) yesField(name string, into *bool) field {
	return field{name, func(n *yaml.Node) { d.yes(n, name, into) }}
}

func (d *decoder) addressField(into *string) field {
	return field{"address", func(n *yaml.Node) { *into = d.address(n, "address") }}
}

func (d *decoder) headerField(into *string) field {
	return field{"header", func(n *yaml.Node) {
		if s, ok := d.text(n, "header"); ok {
			*into, _ = d.headerName(n, s)
		}
	}}
}

func choiceField[T ~string](d *decoder, name string, all []T, into *T) field {
	return field{name, func(n *yaml.Node) { choice(d, n, name, all, into) }}
}

// later is a field whose value is read when others are known.
func later(name string, into **yaml.Node) field {
	return field{name, func(n *yaml.Node) { *into = n }}
}
