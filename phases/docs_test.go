package phases_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// TestPlacesAreDocumented: the table of effects in the author's guide is the one that
// replies are held to.
func TestPlacesAreDocumented(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[abi.EffectType]bool)
	for line := range strings.Lines(string(guide)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			continue
		}
		effect := abi.EffectType(strings.Trim(strings.TrimSpace(cells[0]), "`"))
		mode, at, known := phases.Place(effect)
		if !known {
			continue
		}
		documented[effect] = true
		if got := strings.TrimSpace(cells[1]); got != string(mode) {
			t.Errorf("%s: the guide says mode %s, it is %s", effect, got, mode)
		}
		if got := documentedPhases(strings.TrimSpace(cells[2])); !slices.Equal(got, slices.Sorted(slices.Values(at))) {
			t.Errorf("%s: the guide says %q, it is %v", effect, cells[2], at)
		}
	}
	source, err := os.ReadFile("../abi/reply.go")
	if err != nil {
		t.Fatal(err)
	}
	effects := regexp.MustCompile(`EffectType = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(effects) < 18 {
		t.Errorf("found %d effects in the contract", len(effects))
	}
	for _, found := range effects {
		if effect := abi.EffectType(found[1]); !documented[effect] {
			t.Errorf("the guide does not list %s", effect)
		}
	}
}

// documentedPhases reads a cell, sorted.
func documentedPhases(cell string) []abi.Phase {
	var out []abi.Phase
	for part := range strings.SplitSeq(cell, ", ") {
		switch part {
		case "all":
			out = append(append(out, abi.Phases()...), abi.CompactionPhases()...)
		case "all of a run":
			out = append(out, abi.Phases()...)
		case "all of a run but run_end":
			out = append(out, slices.DeleteFunc(abi.Phases(), func(p abi.Phase) bool { return p == abi.RunEnd })...)
		default:
			out = append(out, abi.Phase(part))
		}
	}
	slices.Sort(out)
	return out
}
