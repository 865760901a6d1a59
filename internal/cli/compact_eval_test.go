package cli_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// evalReport is the part of the JSON report that tests look at.
type evalReport struct {
	Schema string
	Cells  []struct {
		Set, Contender, Kind, Budget, Growth string
		Chain, Probes, Compactions, Failures int
		Literal, Grounded, Savings           float64
		Structure                            struct{ Failed map[string]int }
	}
	Sets    []struct{ Name string }
	Modules []struct{ Name, SHA256 string }
	LeftOut []string `json:"left_out"`
}

// notes is a session with three facts.
const notes = `[{"role":"user","content":"The gate opens with code K417 on weekdays."},
{"role":"assistant","content":"Understood. We talked about the weather for a while, and about lunch, and about nothing in particular."},
{"role":"user","content":"You can leave a parcel in locker B22 behind the house; the budget is 4,200 euros."},
{"role":"assistant","content":"I keep that in mind."}]`

const noteProbes = `{"id":"gate","conversation":"notes.json","question":"Which code opens the gate?","answers":["K417"]}
{"id":"parcel","conversation":"notes.json","question":"Which locker takes a parcel?","answers":["B22"]}
`

// measure runs mortise compact eval and reads its JSON report.
func measure(t *testing.T, args ...string) (exit.Code, *evalReport, string) {
	t.Helper()
	code, stdout, stderr := mortise(t.Context(), "", append([]string{"compact", "eval", "--output", "json"}, args...)...)
	var r evalReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("exit code %d, no report: %v\n%s\n%s", code, err, stdout, stderr)
	}
	return code, &r, stderr
}

// TestCompactEvalOnOwnSessions measures what the repository has, with probes
// that are made from it.
func TestCompactEvalOnOwnSessions(t *testing.T) {
	t.Parallel()
	code, r, stderr := measure(t, "--config", demoConfig(t), "--budgets", "10%,2000", "--chain", "1,2",
		"--policies", "ledger,baselines,fallback", filepath.Join(root(t), "examples", "sessions", "review.jsonl"))
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if r.Schema != "mortise.compact_eval.v1" || len(r.Sets) != 1 || len(r.Modules) != 1 || r.Modules[0].Name != "summarizers" {
		t.Errorf("schema %q, sets %+v, modules %+v", r.Schema, r.Sets, r.Modules)
	}
	if want := 8 * 2 * 3; len(r.Cells) != want {
		t.Fatalf("%d cells, want %d: eight contenders, two budgets, one chain and another with both growths", len(r.Cells), want)
	}
	literal := make(map[string]float64)
	for _, c := range r.Cells {
		if c.Probes < 50 || c.Failures > 0 || c.Savings < 0.5 {
			t.Errorf("%+v", c)
		}
		if c.Kind == "policy" && len(c.Structure.Failed) > 0 {
			t.Errorf("%s on %s: structure %v", c.Contender, c.Set, c.Structure.Failed)
		}
		if c.Chain == 1 && c.Budget == "10%" {
			literal[c.Set+" "+c.Contender] = c.Literal
		}
	}
	for _, set := range r.Sets {
		if policy, rule := literal[set.Name+" ledger"], literal[set.Name+" last-n"]; policy <= rule {
			t.Errorf("%s: ledger keeps %.2f, the last bytes %.2f", set.Name, policy, rule)
		}
	}
	if !strings.Contains(stderr, "100%  ") || strings.Contains(stderr, "\r") {
		t.Errorf("progress without a terminal: %q", stderr)
	}
}

func TestCompactEvalWithProbes(t *testing.T) {
	t.Parallel()
	session, probes := write(t, "notes.json", []byte(notes)), write(t, "facts.jsonl", []byte(noteProbes))
	code, r, stderr := measure(t, "--quiet", "--policies", "last-n,index", "--budgets", "60%", "--chain", "1", "--probes", probes, session)
	if code != exit.OK || stderr != "" || len(r.Cells) != 2 {
		t.Fatalf("exit code %d, %d cells: %s", code, len(r.Cells), stderr)
	}
	if c := r.Cells[0]; c.Set != "facts" || c.Contender != "last-n" || c.Literal != 0.5 || c.Grounded != 0.5 {
		t.Errorf("last-n: %+v", c)
	}
	if c := r.Cells[1]; c.Literal != 1 || c.Grounded != 0 {
		t.Errorf("index: %+v", c)
	}
}

// TestCompactEvalMeasuresAnyModule: an operator's module, by file, alongside the
// config's. Its texts are bad, which is reported.
func TestCompactEvalMeasuresAnyModule(t *testing.T) {
	t.Parallel()
	session, probes := write(t, "notes.json", []byte(notes)), write(t, "facts.jsonl", []byte(noteProbes))
	own := filepath.Join("testdata", "fixed.wasm")
	args := []string{"--quiet", "--chain", "1", "--budgets", "90%", "--probes", probes, "--module", filepath.Join(root(t), "testdata", "guests", "summarizers.wasm")}
	code, r, stderr := measure(t, append(args, "--policies", "ledger,"+own, session)...)
	if code != exit.OK || len(r.Cells) != 2 {
		t.Fatalf("exit code %d, %d cells: %s", code, len(r.Cells), stderr)
	}
	if c := r.Cells[0]; c.Contender != "ledger" || c.Literal != 1 || c.Grounded != 1 {
		t.Errorf("%+v", c)
	}
	if c := r.Cells[1]; c.Contender != "fixed/fixed" || c.Literal != 0 || c.Structure.Failed["tags"] != 1 {
		t.Errorf("%+v", c)
	}

	// A threshold names what is below it, and the code says so.
	code, _, stderr = measure(t, append(args, "--policies", "ledger,"+own, "--min-survival", "0.8", "--min-grounded", "0.5", session)...)
	for _, says := range []string{"fixed/fixed on facts at 90% keeps 0.000, below --min-survival 0.8", "fixed/fixed on facts at 90% keeps 0.000 grounded, below --min-grounded 0.5"} {
		if !strings.Contains(stderr, says) {
			t.Errorf("%q does not say %q", stderr, says)
		}
	}
	if code != exit.Run || strings.Contains(stderr, "ledger on") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr = measure(t, append(args, "--policies", "ledger,last-n", "--min-survival", "0.8", session)...); code != exit.OK {
		t.Errorf("nothing is below, and the code is %d: %s", code, stderr)
	}
}

// TestCompactEvalTellsWhatNeverWorks: a budget that no summary fits in is not a score
// of zero that goes unnoticed.
func TestCompactEvalTellsWhatNeverWorks(t *testing.T) {
	t.Parallel()
	session := write(t, "notes.json", []byte(notes))
	code, r, stderr := measure(t, "-q", "--chain", "1", "--budgets", "1", "--policies", "ledger", "-c", demoConfig(t), session)
	if code != exit.Run || !strings.Contains(stderr, "ledger on notes.json at 1 failed each of 1 times: ") || !strings.Contains(stderr, "too small for a summary") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if len(r.Cells) != 1 || r.Cells[0].Failures != 1 {
		t.Errorf("%+v", r.Cells)
	}
}

// TestCompactEvalWithoutConfig measures the policies that are in the program, but
// for those that ask a model.
func TestCompactEvalWithoutConfig(t *testing.T) {
	t.Parallel()
	code, r, stderr := measure(t, "--chain", "1", "--budgets", "100%", "--policies", "bundled", write(t, "notes.json", []byte(notes)))
	var names []string
	for _, c := range r.Cells {
		names = append(names, c.Contender)
	}
	if code != exit.OK || !slices.Equal(names, []string{"ledger"}) {
		t.Errorf("exit code %d, contenders %q: %s", code, names, stderr)
	}
	if len(r.LeftOut) != 2 || !strings.Contains(stderr, "left out: gc: writes no text") || !strings.Contains(stderr, "left out: anchored: asks a model") {
		t.Errorf("left out %q: %s", r.LeftOut, stderr)
	}
}

func TestCompactEvalTable(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := mortise(t.Context(), notes, "compact", "eval", "--policies", "baselines", "--chain", "1,2", "--growth", "said", "-")
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, says := range []string{"stdin at 10%: 3 probes in 1 conversation, made from them", "k=1", "k=2 said", "kept k=2 said", "centrality", "literal/grounded"} {
		if !strings.Contains(stdout, says) {
			t.Errorf("the table does not say %q:\n%s", says, stdout)
		}
	}
	if row := regexp.MustCompile(`heads .*% +[01]\.\d\d +- +[0-9.]+ ms`); !row.MatchString(stdout) {
		t.Errorf("there is a share of modified files, of which there are none:\n%s", stdout)
	}
}

// TestCompactEvalPlot: the drawing is well-formed, and has a bar as long as its score for each contender.
func TestCompactEvalPlot(t *testing.T) {
	t.Parallel()
	session := write(t, "<notes>.json", []byte(notes))
	svg := filepath.Join(t.TempDir(), "s.SVG")
	if code, _, stderr := measure(t, "-q", "--policies", "baselines", "--budgets", "20%,50%", "--plot", svg, session); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	text, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	var drawing struct {
		Panels []struct {
			Text  []string `xml:"text"`
			Rects []struct {
				Width int `xml:"width,attr"`
			} `xml:"rect"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal(text, &drawing); err != nil {
		t.Fatalf("the SVG is not XML: %v", err)
	}
	if len(drawing.Panels) != 4 {
		t.Fatalf("%d panels of two scores at two budgets", len(drawing.Panels))
	}
	for _, panel := range drawing.Panels {
		if !strings.Contains(panel.Text[0], "<notes>.json") || !slices.Contains(panel.Text, "first-last") {
			t.Errorf("the texts are %q", panel.Text)
		}
		for i, bar := range panel.Rects {
			value, err := strconv.ParseFloat(panel.Text[3+2*i], 64)
			if err != nil || math.Abs(float64(bar.Width)-200*value) > 2 {
				t.Errorf("a bar of %d for %q: %v", bar.Width, panel.Text[3+2*i], err)
			}
		}
	}
}

// TestCompactEvalReadsFolders: what is no session is left out and told, what is
// hidden is not looked at.
func TestCompactEvalReadsFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/notes.json": notes, "b/more.jsonl": `{"role":"user","content":"The badge is Z99 and opens door D407."}`,
		"a/report.json": `{"resolved": true}`, ".hidden/x.json": "{", "readme.md": "#",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, r, stderr := measure(t, "--policies", "fallback", "--chain", "1", dir)
	if code != exit.OK || len(r.Sets) != 2 {
		t.Fatalf("exit code %d, sets %+v: %s", code, r.Sets, stderr)
	}
	if len(r.LeftOut) != 1 || !strings.Contains(r.LeftOut[0], "report.json") || !strings.Contains(stderr, "left out: ") {
		t.Errorf("left out %q: %s", r.LeftOut, stderr)
	}
	cut := filepath.Join(dir, "b", "cut.json")
	if err := os.WriteFile(cut, []byte(`[{"role":"user","content":"x"},{"role":"assis`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := mortise(t.Context(), "", "compact", "eval", "--policies", "fallback", "--chain", "1", dir); code == exit.OK || !strings.Contains(stderr, cut) || !strings.Contains(stderr, "--lenient leaves") {
		t.Errorf("a truncated file: exit code %d: %s", code, stderr)
	}
	code, r, stderr = measure(t, "--policies", "fallback", "--chain", "1", "--lenient", dir)
	if code != exit.OK || len(r.Sets) != 2 || !strings.Contains(strings.Join(r.LeftOut, " "), "cut.json") {
		t.Errorf("a truncated file, leniently: exit code %d, left out %q: %s", code, r.LeftOut, stderr)
	}
}

func TestCompactEvalRefuses(t *testing.T) {
	t.Parallel()
	session, probes := write(t, "notes.json", []byte(notes)), write(t, "facts.jsonl", []byte(noteProbes))
	broken, empty := write(t, "broken.jsonl", []byte(notes[:40])), t.TempDir()
	wrong := write(t, "wrong.jsonl", []byte(noteProbes+`{"id":"x","conversation":"notes.json","answer":"y"}`))
	elsewhere := write(t, "elsewhere.jsonl", []byte(`{"id":"x","conversation":"nobody","answers":["y"]}`))
	for name, tc := range map[string]struct {
		args []string
		code exit.Code
		says string
	}{
		"no session":        {nil, exit.Usage, "TRANSCRIPT|FOLDER is missing; write mortise compact eval"},
		"output":            {[]string{"-o", "xml", session}, exit.Usage, `--output "xml": must be table or json`},
		"budget":            {[]string{"--budgets", "10%,0", session}, exit.Usage, `budget "0": write a share up to 100%`},
		"chain":             {[]string{"--chain", "0", session}, exit.Usage, `--chain "0": must be a number from 1`},
		"growth":            {[]string{"--growth", "x", session}, exit.Usage, `--growth "x": must be whole or said`},
		"survival":          {[]string{"--min-survival", "80", session}, exit.Usage, "--min-survival 80: must be from 0 to 1"},
		"plot":              {[]string{"--plot", "x.pdf", session}, exit.Usage, `--plot "x.pdf": must end in .svg`},
		"config":            {[]string{"-c", "nowhere.yaml", session}, exit.Config, "nowhere.yaml"},
		"missing session":   {[]string{"nowhere.jsonl"}, exit.Usage, "nowhere.jsonl"},
		"broken session":    {[]string{broken}, exit.Session, "broken.jsonl"},
		"empty folder":      {[]string{empty}, exit.Session, "holds no recording"},
		"no probes there":   {[]string{"--probes", empty, session}, exit.Session, "holds no .jsonl file"},
		"wrong probe":       {[]string{"--probes", wrong, session}, exit.Session, `wrong.jsonl: line 3: json: unknown field "answer"`},
		"unknown session":   {[]string{"--probes", elsewhere, session}, exit.Session, `probe "x": conversation "nobody": no recording fits; there are notes.json:c0001`},
		"nothing to probe":  {[]string{write(t, "hi.json", []byte(oneMessage))}, exit.Session, "no probe could be made"},
		"needs a model":     {[]string{"--policies", "anchored", "--probes", probes, session}, exit.Usage, "anchored asks a model, and none is asked here; name another"},
		"missing module":    {[]string{"--policies", "nowhere.wasm", session}, exit.Module, "nowhere.wasm"},
		"not a summarizer":  {[]string{"--module", "../../testdata/guests/admission.wasm", session}, exit.Module, `has no export "summarize"`},
		"unknown policy":    {[]string{"--policies", "x", "-c", demoConfig(t), session}, exit.Config, `knows no policy "x"`},
		"plot in no folder": {[]string{"--policies", "last-n", "--plot", filepath.Join(empty, "no", "x.svg"), session}, exit.Run, "plot: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := mortise(t.Context(), "", append([]string{"compact", "eval", "-q"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stderr, tc.says) {
				t.Errorf("exit code %d, want %d; %q does not say %q", code, tc.code, stderr, tc.says)
			}
			if n := strings.Count(strings.TrimSpace(stderr), "\n"); n > 0 {
				t.Errorf("%d lines: %s", n+1, stderr)
			}
		})
	}
}

func TestCompactEvalIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := mortise(ctx, "", "compact", "eval", "--policies", "baselines", write(t, "notes.json", []byte(notes)))
	if code != exit.Interrupted || stdout != "" || !strings.Contains(stderr, "interrupted") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// TestCompactEvalOnRealInputs runs the command of docs/compaction.md, on fewer
// contenders; ledger must be better grounded than the best of them.
func TestCompactEvalOnRealInputs(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	dir := shared(t)
	code, r, stderr := measure(t, "-q", "--config", demoConfig(t), "--policies", "ledger,index+last-n", "--chain", "1",
		"--probes", filepath.Join(dir, "..", "probes"), dir)
	if code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var sets []string
	for _, s := range r.Sets {
		sets = append(sets, s.Name)
	}
	if want := []string{"bfcl-memory", "qmsum", "tau-bench"}; !slices.Equal(sets, want) {
		t.Fatalf("sets %q, want %q", sets, want)
	}
	grounded := make(map[string]float64)
	for _, c := range r.Cells {
		grounded[c.Set+" "+c.Contender] = c.Grounded
	}
	if !slices.ContainsFunc(r.LeftOut, func(s string) bool { return strings.HasPrefix(s, "mini-swe-agent: 12 of 12 probes are withdrawn") }) {
		t.Errorf("left out: %q", r.LeftOut)
	}
	for _, set := range sets {
		if got, least := grounded[set+" ledger"], grounded[set+" index+last-n"]; got <= least {
			t.Errorf("%s: ledger keeps %.3f grounded, the best baseline %.3f", set, got, least)
		}
	}
}
