package schema_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/schema"
)

type object = map[string]any

func TestCheck(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile(object{
		"type": "object", "required": []any{"path"},
		"properties": object{"path": object{"type": "string"}, "depth": object{"type": "integer", "maximum": int64(3)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for want, value := range map[string]any{
		"":                        object{"path": "/", "depth": int64(3)},
		"missing property 'path'": nil,
		"got number, want string": object{"path": 0.5},
		"maximum":                 object{"path": "/", "depth": uint64(4)},
		"got string, want object": `{"path": `,
	} {
		err := s.Check(value)
		switch {
		case want == "" && err != nil:
			t.Errorf("%v: %v", value, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%v: error %v, want one with %q", value, err, want)
		}
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	none, err := schema.Compile(nil)
	if err != nil || none.Check("anything") != nil {
		t.Errorf("without a schema: %v", err)
	}
	for want, document := range map[string]any{
		"may not refer to": object{"$ref": "file:///etc/passwd"},
		"type":             object{"type": "objekt"},
	} {
		if _, err := schema.Compile(document); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
