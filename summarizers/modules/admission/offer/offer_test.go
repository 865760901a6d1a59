package offer_test

import (
	"slices"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/offer"
)

func admit(t *testing.T, offers []offer.Offer, policy string) (mortise.Decision, error) {
	t.Helper()
	g := offer.Guest("g", "s", offers...)
	request, err := mortise.Marshal(&mortise.AdmitRequest{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	out, err := g.Call(mortise.ExportAdmit, request)
	if err != nil {
		return mortise.Decision{}, err
	}
	var d mortise.Decision
	err = mortise.Unmarshal(out, &d)
	return d, err
}

func TestGuest(t *testing.T) {
	t.Parallel()
	all := []offer.Offer{offer.Quota(), offer.Threshold(), offer.Cost()}
	for _, policy := range []string{"", "quota", "threshold", "cost"} {
		if d, err := admit(t, all, policy); err != nil || d.Reason != mortise.ReasonNoPreparation && d.Reason != mortise.ReasonAttemptLimit {
			t.Errorf("%q: %+v, %v", policy, d, err)
		}
	}
	if _, err := admit(t, all[1:], "quota"); err == nil || !strings.Contains(err.Error(), "g: policy quota: unknown; this module knows threshold, cost") {
		t.Errorf("error %v", err)
	}
	// A key that two policies have means the same in both.
	seen := map[string]any{}
	for _, o := range all {
		d := offer.Alone(o).Description
		if !slices.Equal(d.Policies, []string{o.Name}) || d.Name != o.Name || d.Summary == "" {
			t.Errorf("%+v", d)
		}
		for key, schema := range o.Properties {
			def, _ := mortise.Lookup(schema, "default")
			if was, ok := seen[key]; ok && was != def {
				t.Errorf("%s: default %v here and %v there", key, def, was)
			}
			seen[key] = def
		}
	}
}
