package jet

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestReport(t *testing.T) {
	t.Parallel()
	const since = `"leader":"a","leader_since":"2026-01-01T00:00:00Z",`
	for name, c := range map[string]struct {
		say          string
		deaf, doubts bool
	}{
		"all are heard":                  {`{"ts":"2026-01-01T01:00:00Z","cluster":{` + since + `"replicas":[{"active":900000000},{"active":1}]}}`, false, false},
		"one is silent":                  {`{"ts":"2026-01-01T01:00:00Z","cluster":{` + since + `"replicas":[{"active":900000000},{"active":5000000000}]}}`, false, true},
		"one is gone":                    {`{"ts":"2026-01-01T01:00:00Z","cluster":{` + since + `"replicas":[{"active":900000000},{"active":31000000000}]}}`, false, false},
		"both are silent":                {`{"ts":"2026-01-01T01:00:00Z","cluster":{` + since + `"replicas":[{"active":3000000000},{"active":5000000000}]}}`, true, true},
		"one was never heard":            {`{"ts":"2026-01-01T00:00:05Z","cluster":{` + since + `"replicas":[{"active":900000000},{"active":0}]}}`, false, true},
		"one was never heard since long": {`{"ts":"2026-01-01T01:00:00Z","cluster":{` + since + `"replicas":[{"active":900000000},{"active":0}]}}`, false, false},
		"two of five are heard":          {`{"ts":"2026-01-01T01:00:00Z","cluster":{` + since + `"replicas":[{"active":1},{"active":1},{"active":0},{"active":40000000000}]}}`, false, false},
		"one of five is heard":           {`{"ts":"2026-01-01T01:00:00Z","cluster":{` + since + `"replicas":[{"active":1},{"active":0},{"active":0},{"active":40000000000}]}}`, true, false},
	} {
		r, err := read(&nats.Msg{Data: []byte(c.say)})
		if err != nil || r.deaf() != c.deaf || r.doubts() != c.doubts {
			t.Errorf("%s: deaf %v, doubts %v, %v", name, r.deaf(), r.doubts(), err)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	sole := report{}
	sole.Cluster.Leader, sole.Cluster.Replicas = "a", []peer{{Active: 1}, {Active: 1}}
	other := sole
	other.Cluster.Leader = "b"
	wary, deaf := sole, sole
	wary.Cluster.Replicas = []peer{{Active: 1}, {Active: silence}}
	deaf.Cluster.Replicas = []peer{{Active: silence}, {Active: silence}}
	for name, c := range map[string]struct {
		list    []report
		certain bool
		err     error
	}{
		"one":                                  {[]report{sole}, true, nil},
		"one, twice":                           {[]report{sole, sole}, true, nil},
		"one that may not be alone":            {[]report{wary}, false, nil},
		"two":                                  {[]report{wary, other}, false, errTwins},
		"one that was cut off":                 {[]report{deaf}, false, errDeaf},
		"one and one that was cut off":         {[]report{wary, deaf}, false, errDeaf},
		"one that was cut off and another one": {[]report{deaf, other}, false, errDeaf},
	} {
		if certain, err := judge(c.list); certain != c.certain || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, certain, err)
		}
	}
}
