package offer_test

import (
	"slices"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/offer"
)

func summarize(t *testing.T, offers []offer.Offer, policy string) (mortise.Summary, error) {
	t.Helper()
	g := offer.Guest("g", "s", offers...)
	request, err := mortise.Marshal(&mortise.SummarizeRequest{Policy: policy, BudgetTokens: 200, Messages: []mortise.Message{
		{ID: "m", Role: mortise.RoleUser, Content: []mortise.ContentBlock{mortise.Text("The key of mira-7 stays as it is.")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := g.Call(mortise.ExportSummarize, request)
	if err != nil {
		return mortise.Summary{}, err
	}
	var s mortise.Summary
	err = mortise.Unmarshal(out, &s)
	return s, err
}

func TestGuest(t *testing.T) {
	t.Parallel()
	all := []offer.Offer{offer.Ledger(), offer.GC(), offer.Anchored()}
	for policy, by := range map[string]string{"": "ledger", "ledger": "ledger"} {
		if s, err := summarize(t, all, policy); err != nil || s.Policy != by || !strings.Contains(s.Text, "mira-7") {
			t.Errorf("%q: %+v, %v", policy, s, err)
		}
	}
	if _, err := summarize(t, all, "anchored"); err == nil || !strings.Contains(err.Error(), "denied: the role summarizer is not granted") {
		t.Errorf("error %v", err)
	}
	if _, err := summarize(t, all[1:2], "ledger"); err == nil || !strings.Contains(err.Error(), "g: policy ledger: unknown; this module knows gc") {
		t.Errorf("error %v", err)
	}
	for _, o := range all {
		d := offer.Alone(o).Description
		if !slices.Equal(d.Policies, []string{o.Name}) || d.Name != o.Name || d.Summary == "" {
			t.Errorf("%+v", d)
		}
		// A policy asks for the model that it needs, and one of many policies can do without.
		if (len(d.Capabilities) == 1) != o.Model || o.Model && d.Capabilities[0].Optional {
			t.Errorf("%s asks for %+v", o.Name, d.Capabilities)
		}
	}
	if d := offer.Guest("g", "s", all...).Description; len(d.Capabilities) != 1 || !d.Capabilities[0].Optional {
		t.Errorf("%+v", d.Capabilities)
	}
}
