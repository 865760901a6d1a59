package proxy

import (
	"testing"

	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// Errors of several conversations do not cancel out: of one that the cache rules miss by 10 % and one by -10 % the saving is not known, and of
// two without an error it is.
func TestReport_errors(t *testing.T) {
	t.Parallel()
	for _, missed := range []float64{0, 10} {
		s, err := New(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		for name, units := range map[string]float64{"one": 100 - missed, "two": 100 + missed} {
			r, err := wire.Parse(wire.Messages, []byte(`{"messages":[{"role":"user","content":"hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			ln, _ := s.lanes.Find(t.Context(), &lane.Key{Session: name, Kind: lane.Main}, r, false)
			ln.Attached = &attached{}
			ln.Money = &money.Account{Ledger: money.Ledger{Paid: money.Totals{Calls: 1, Units: 100}, Machine: money.Totals{Units: units}}}
			ln.Unlock()
		}
		if total := s.Report().Total; total.MachineError != missed/100 || (total.SavedWithout != nil) != (missed == 0) {
			t.Errorf("%+v", total)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
