package future_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/summarizers"
	"github.com/mortise-dev/mortise/summarizers/bundled"
)

// TestMasksOnRealCompactions counts what the policy gc masks in real sessions, and what was masked wrongly: facts that the
// agent used later without reading them again, and that stand in no message that is left.
func TestMasksOnRealCompactions(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	list := windows(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(host.Config{CacheDir: filepath.Join(cache, "mortise-test")}) // of compiled modules
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(t.Context()) })
	spec, err := bundled.Summarizers()
	if err != nil {
		t.Fatal(err)
	}
	spec.Limits.Timeout, spec.Limits.MemoryPages, spec.Limits.InputBytes = 60e9, 8192, 64<<20
	m, err := h.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize, Policy: "gc", Config: map[string]any{"alone": true}})
	if err != nil {
		t.Fatal(err)
	}
	masks, bytes, kills := map[abi.MaskReason]int{}, map[abi.MaskReason]int{}, map[abi.MaskReason]int{}
	all, needed, after := 0, 0, 0
	for _, w := range list {
		r := &abi.SummarizeRequest{Messages: w.Before, BudgetTokens: 1000, Masking: &abi.Masking{ViewTokens: compaction.Estimate(w.Before)}}
		s, err := p.Summarize(t.Context(), r)
		if err != nil {
			t.Fatal(w.Session, err)
		}
		text := compaction.Remains(r, s)
		all += len(eval.Flatten(w.Before))
		after += len(text)
		why := map[string]abi.MaskReason{}
		for _, k := range s.Masks {
			masks[k.Reason]++
			why[k.MessageID] = k.Reason
			bytes[k.Reason] += len(eval.Flatten(w.Before)) - len(eval.Flatten(compaction.Masked(w.Before, []abi.Mask{k})))
		}
		for _, f := range w.Needed {
			needed++
			if f.Strict(text) {
				continue
			}
			last := abi.MaskReason("")
			for i := range w.Before {
				if r, ok := why[w.Before[i].ID]; ok && strings.Contains(eval.Flatten(w.Before[i:i+1]), f.Text) {
					last = r
				}
			}
			kills[last]++
		}
	}
	t.Logf("%d bytes, %d are left; masks %v, bytes %v; of %d needed facts lost, by the newest mask that held them, %v", all, after, masks, bytes, needed, kills)
	dead, again := 0, kills[abi.MaskRefetchable]
	for _, n := range kills {
		dead += n
	}
	dead -= again
	if after*100 > all*42 || bytes[abi.MaskInvalidated]+bytes[abi.MaskSuperseded] < all/4 {
		t.Errorf("%d of %d bytes are left, of the dead %v", after, all, bytes)
	}
	if dead*100 > needed*2 || again*100 > needed*10 {
		t.Errorf("of %d needed facts %d were lost with what was called dead, %d with what can be read again", needed, dead, again)
	}
}
