package summarizers_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/summarizers"
)

// TestWithoutOriginals: a summarizer does not see answers that plugins replaced, and the log
// that it is given keeps them.
func TestWithoutOriginals(t *testing.T) {
	t.Parallel()
	plain := []abi.Message{{ID: "a", Metadata: map[string]any{"by": "x"}}}
	if got := summarizers.WithoutOriginals(plain); &got[0] != &plain[0] {
		t.Error("messages without originals were copied")
	}
	log := slices.Concat(plain, []abi.Message{{ID: "b", Metadata: map[string]any{"by": "x", abi.MetadataOriginal: "the secret"}}})
	got := summarizers.WithoutOriginals(log)
	if !reflect.DeepEqual(got[1].Metadata, map[string]any{"by": "x"}) || got[0].Metadata["by"] != "x" {
		t.Errorf("a guest gets %+v", got)
	}
	if log[1].Metadata[abi.MetadataOriginal] != "the secret" {
		t.Error("the log has lost its original")
	}
}
