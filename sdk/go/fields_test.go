package mortise_test

import (
	"errors"
	"fmt"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func TestFields(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]mortise.Fields{
		"\x82\xa1b\x01\xa1a\x91\xc3": {{Key: "b", Value: 1}, {Key: "a", Value: []any{true}}},
		"\x81\xa1f\x81\xa1g\xc0":     {{Key: "f", Value: mortise.Fields{{Key: "g"}}}},
		"\x80":                       {},
		"\xc0":                       nil,
	} {
		for _, as := range []any{v, []any{v}} {
			reply := &mortise.Reply{Updates: []mortise.Update{{Value: as}}}
			got, err := mortise.Marshal(reply)
			head := "\x81\xa7updates\x91\x83\xa3key\xa0\xa2op\xa0\xa5value"
			if _, list := as.([]any); list {
				head += "\x91"
			}
			if err != nil || string(got) != head+want {
				t.Errorf("%v: %q, error %v, want %q", as, got, err, head+want)
			}
		}
	}
	deep := mortise.Fields{}
	for range mortise.MaxDepth {
		deep = mortise.Fields{{Key: "k", Value: deep}}
	}
	if _, err := mortise.Marshal(deep); !errors.Is(err, mortise.ErrDepth) {
		t.Errorf("error %v, want ErrDepth", err)
	}
}

func ExampleFields() {
	e := mortise.Effect{Type: mortise.EffectEmit, EventType: "seen", Payload: mortise.Fields{
		{Key: "count", Value: 2}, {Key: "last", Value: "m2"},
	}}
	data, err := mortise.Marshal(&e)
	if err != nil {
		fmt.Println(err)
	}
	var out mortise.Effect
	if err := mortise.Unmarshal(data, &out); err != nil {
		fmt.Println(err)
	}
	fmt.Println(out.Payload)
	// Output: map[count:2 last:m2]
}
