package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-go/weir/internal/spelling"
)

func TestOneLine(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  string
		ok    bool
	}{
		{"x", nil, "", true},
		{"x", []string{"a"}, "a", true},
		{"x", []string{"a", "a"}, "a", true},
		{"x", []string{"a", "b"}, "", false},
		{"x", []string{"a", ""}, "", false},
		{"x", []string{"bearer t"}, "bearer t", true},
		{"Authorization", []string{"bearer  t"}, "Bearer t", true},
		{"authorization", []string{"bearer t", "Bearer t "}, "Bearer t", true},
		{"x", []string{"a ", "\ta"}, "a", true},
		{"x", []string{"a\xa0", "a\x85", "\u3000a\u00a0"}, "a", true},
		{"x-bin", []string{"a "}, "a ", true},
		{"proxy-authorization", []string{"BASIC t"}, "Basic t", true},
	} {
		got, ok := spelling.OneLine(test.name, test.lines)
		assert.Equal(t, test.want, got, "%s %q", test.name, test.lines)
		assert.Equal(t, test.ok, ok, "%s %q", test.name, test.lines)
	}
}
