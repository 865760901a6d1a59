package compaction_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// TestAcceptance has a subtest for each adopted behaviour that no other test here
// shows. Where the behaviour differs on purpose, testdata/parity.tsv has the reason.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(*testing.T){
		"should_compact_at_exact_threshold":                                     exactThreshold,
		"should_compact_not_when_disabled":                                      notWhenDisabled,
		"prepare_compaction_last_is_compaction":                                 lastIsCompaction,
		"prepare_compaction_selects_cutpoint_by_keep_recent_tokens":             keepTwoTokens,
		"prepare_compaction_keep_recent_tokens_zero_keeps_only_last_cut_point":  keepNothing,
		"prepare_compaction_skips_tool_result_as_cut_point_and_marks_split":     splitTurn,
		"find_cut_point_includes_tool_result_when_needed":                       crossedOnResult,
		"prepare_compaction_respects_previous_compaction_boundary":              previousBoundary,
		"compact_split_turn_calls_the_summarizer_once":                          splitTurnOnce,
		"compact_appends_file_operations_and_sorts_lists":                       appendsFiles,
		"format_file_operations_empty":                                          noFiles,
		"trim_to_compaction_boundary_drops_pre_summary":                         trimDrops,
		"trim_to_compaction_boundary_noop_without_summary":                      trimNothing,
		"trim_to_compaction_boundary_idempotent":                                trimTwice,
		"trim_to_compaction_boundary_uses_last_summary":                         trimUsesLast,
		"state_default_empty":                                                   stateEmpty,
		"state_records_keep_their_order":                                        stateOrder,
		"state_clear_twice":                                                     stateClear,
		"state_record_does_not_touch_in_flight_of_another":                      stateForeignFlight,
		"token_count_estimation_4000_characters":                                characters,
		"truncation_system_only":                                                truncateSystemOnly,
		"truncation_tool_only":                                                  truncateToolOnly,
		"truncation_tool_descriptors_reduce_the_budget":                         truncateReserve,
		"truncation_very_large_single_message":                                  truncateLarge,
		"truncation_min_recent_exceeds_length":                                  truncateShort,
		"a_kept_message_larger_than_the_budget_is_not_tried_again_at_each_step": keptIsLarger,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

func exactThreshold(t *testing.T) {
	t.Helper()
	log := filler()
	for _, above := range []int64{0, 1} {
		d := newDesk()
		c := d.at(t, says("x"), func(cfg *compaction.Config) { cfg.Policy.ThresholdTokens = compaction.Estimate(log) + above })
		if got := c.Consider(t.Context(), thread, log); got != (above == 0) {
			t.Errorf("%d tokens above the view: started %v", above, got)
		}
	}
}

// A threshold that is never reached is how compaction is turned off.
func notWhenDisabled(t *testing.T) {
	t.Helper()
	d := newDesk()
	c := d.at(t, says("x"), func(cfg *compaction.Config) {
		cfg.Policy = compaction.Policy{WindowTokens: 1 << 40, ThresholdTokens: 1 << 39, KeepRecentTokens: 1}
	})
	if c.Consider(t.Context(), thread, filler()) || len(d.events) != 0 {
		t.Errorf("told %+v", d.events)
	}
}

func lastIsCompaction(t *testing.T) {
	t.Helper()
	log := []abi.Message{user("u", words(2000)), assistant("a", "x")}
	if r, ok := compaction.Plan(log, &compaction.Marker{FromID: "u", ToID: "a"}, loose(0)); ok {
		t.Errorf("planned %+v", r)
	}
}

// ones are user messages of five tokens each: four for the message, one for the word.
func ones(n int) []abi.Message {
	var out []abi.Message
	for i := range n {
		out = append(out, user(fmt.Sprintf("u%d", i+1), "word"))
	}
	return out
}

func planned(t *testing.T, log []abi.Message, p compaction.Policy) (string, string) {
	t.Helper()
	r, ok := compaction.Plan(log, nil, p)
	if !ok {
		t.Fatal("nothing to summarize")
	}
	return r.FromID, r.ToID
}

func keepTwoTokens(t *testing.T) {
	t.Helper()
	if from, to := planned(t, ones(5), compaction.Policy{KeepRecentTokens: 10}); from != "u1" || to != "u3" {
		t.Errorf("from %s to %s", from, to)
	}
}

func keepNothing(t *testing.T) {
	t.Helper()
	if from, to := planned(t, ones(5), compaction.Policy{}); from != "u1" || to != "u4" {
		t.Errorf("from %s to %s", from, to)
	}
}

func splitTurn(t *testing.T) {
	t.Helper()
	log := []abi.Message{user("u", "word"), calls("m", "c"), result("r", "c", "word"), assistant("a", "word")}
	if from, to := planned(t, log, compaction.Policy{KeepRecentTokens: 5}); from != "u" || to != "r" {
		t.Errorf("from %s to %s", from, to)
	}
	// Fixed: the request stays in the view, word for word, while its turn continues.
	view := compaction.View(log, &compaction.Marker{ID: "1", FromID: "u", ToID: "r"})
	if got := strings.Join(ids(view), " "); got != "summary/1 u a" {
		t.Errorf("the view is %s", got)
	}
}

func crossedOnResult(t *testing.T) {
	t.Helper()
	log := []abi.Message{user("u", "word"), calls("m", "c"), result("r", "c", words(100)), assistant("a", "word")}
	if from, to := planned(t, log, compaction.Policy{KeepRecentTokens: 50}); from != "u" || to != "u" {
		t.Errorf("from %s to %s: the call is not kept with its result", from, to)
	}
}

func previousBoundary(t *testing.T) {
	t.Helper()
	log := []abi.Message{user("u", "a"), assistant("a", "b"), user("u2", "c"), assistant("a2", "d"), user("u3", "e")}
	prev := &compaction.Marker{FromID: "u", ToID: "a", Summary: "before"}
	r, ok := compaction.Plan(log, prev, loose(1))
	if !ok || r.FromID != "u2" || r.ToID != "a2" || r.PreviousSummary == nil || *r.PreviousSummary != "before" {
		t.Errorf("planned %+v", r)
	}
}

// Fixed: one request, and the summary before is part of it also when a turn is
// split.
func splitTurnOnce(t *testing.T) {
	t.Helper()
	s := &reader{}
	d := newDesk()
	c := d.at(t, s, nil)
	log := []abi.Message{user("u", "do it")}
	for i := range 2 {
		call := fmt.Sprintf("c%d", i)
		log = append(log, calls("m"+call, call), result("r"+call, call, words(2000)), assistant("a"+call, "x"))
		if !c.Consider(t.Context(), thread, log) {
			t.Fatalf("pass %d was not started", i)
		}
		consume(t, c, log, d.run())
	}
	if len(s.requests) != 2 || s.requests[1].PreviousSummary == nil || *s.requests[1].PreviousSummary != "summary 1" {
		t.Errorf("asked %d times: %+v", len(s.requests), s.requests)
	}
	if view := ids(c.View(thread, log)); !slices.Contains(view, "u") {
		t.Errorf("the request is gone from %v", view)
	}
}

func appendsFiles(t *testing.T) {
	t.Helper()
	m := &compaction.Marker{
		ID: "1", FromID: "u", ToID: "u", Summary: "b.go was read.", ReadFiles: []string{"a.go", "b.go", "c\n</conversation-summary>.go"},
		ModifiedFiles: []string{"d.go"},
	}
	view := compaction.View([]abi.Message{user("u", "x"), user("v", "x")}, m)
	want := "<conversation-summary>\nb.go was read.\n\n<read-files besides=\"those named above\">\na.go\nc ?/conversation-summary?.go\n</read-files>\n\n" +
		"<modified-files>\nd.go\n</modified-files>\n</conversation-summary>"
	if got := view[0].Text(); got != want {
		t.Errorf("shown is %q, want %q", got, want)
	}
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("f%d.go", i))
	}
	view = compaction.View([]abi.Message{user("u", "x"), user("v", "x")}, &compaction.Marker{ID: "1", FromID: "u", ToID: "u", ReadFiles: many})
	if n := strings.Count(view[0].Text(), ".go"); n != 40 {
		t.Errorf("%d files are listed", n)
	}
}

func noFiles(t *testing.T) {
	t.Helper()
	view := compaction.View([]abi.Message{user("u", "x"), user("v", "x")}, &compaction.Marker{ID: "1", FromID: "u", ToID: "u", Summary: "s"})
	if got := view[0].Text(); got != "<conversation-summary>\ns\n</conversation-summary>" {
		t.Errorf("shown is %q", got)
	}
}

func trimDrops(t *testing.T) {
	t.Helper()
	view := compaction.View(ones(4), &compaction.Marker{ID: "1", FromID: "u1", ToID: "u3", Summary: "s"})
	if got := strings.Join(ids(view), " "); got != "summary/1 u4" {
		t.Errorf("the view is %s", got)
	}
}

func trimNothing(t *testing.T) {
	t.Helper()
	log := ones(4)
	if got := compaction.View(log, nil); !reflect.DeepEqual(got, log) {
		t.Errorf("the view is %v", ids(got))
	}
}

func trimTwice(t *testing.T) {
	t.Helper()
	m := &compaction.Marker{ID: "1", FromID: "u1", ToID: "u3", Summary: "s"}
	once := compaction.View(ones(4), m)
	if twice := compaction.View(once, m); !reflect.DeepEqual(once, twice) {
		t.Errorf("%v became %v", ids(once), ids(twice))
	}
}

func trimUsesLast(t *testing.T) {
	t.Helper()
	d := newDesk()
	c := d.at(t, says("short"), nil)
	log := filler()
	for i := range 3 {
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, d.run())
		log = append(log, assistant(fmt.Sprintf("x%d", i), words(1500)), user(fmt.Sprintf("y%d", i), "go on"))
	}
	markers := c.Markers(thread)
	view := c.View(thread, log)
	if len(markers) != 3 || view[0].ID != "summary/"+markers[2].ID || strings.Count(strings.Join(ids(view), " "), "summary/") != 1 {
		t.Errorf("the view is %v", ids(view))
	}
}

func stateEmpty(t *testing.T) {
	t.Helper()
	var s compaction.State
	if _, ok := s.Undo(); ok || s.InFlight != nil || len(s.Markers) != 0 || s.Total != 0 {
		t.Errorf("%+v", s)
	}
}

func stateOrder(t *testing.T) {
	t.Helper()
	d := newDesk()
	c := d.at(t, &reader{}, nil)
	log := filler()
	for i := range 3 {
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, d.run())
		log = append(log, assistant(fmt.Sprintf("x%d", i), words(1500+i)), user(fmt.Sprintf("y%d", i), "go on"))
	}
	for i, m := range c.Markers(thread) {
		if m.Summary != fmt.Sprintf("summary %d", i+1) || m.PreTokens <= m.PostTokens || m.PostTokens == 0 {
			t.Errorf("marker %d is %+v", i, m)
		}
	}
}

func stateClear(t *testing.T) {
	t.Helper()
	s := compaction.State{Markers: []compaction.Marker{{ID: "1"}, {ID: "2"}}, Total: 2}
	for _, want := range []string{"2", "1"} {
		if m, ok := s.Undo(); !ok || m.ID != want {
			t.Errorf("took %q back, want %q", m.ID, want)
		}
	}
	if _, ok := s.Undo(); ok || s.Total != 2 {
		t.Errorf("%+v", s)
	}
	s = compaction.State{Markers: []compaction.Marker{{ID: "9"}}, Forgot: true}
	if _, ok := s.Undo(); ok {
		t.Error("took one back that stands on a forgotten one")
	}
}

// What another process has under way is not touched, and nothing is started alongside
// it, until it is past its deadline.
func stateForeignFlight(t *testing.T) {
	t.Helper()
	memory, d := compaction.NewMemory(), newDesk()
	c := d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Store = memory })
	log := filler()
	c.View(thread, log) // it has read the thread
	held := compaction.InFlight{ID: "theirs", Owner: "they", Attempt: 1, DeadlineMS: d.clock().UnixMilli() + 60_000}
	if _, err := memory.Swap(thread, 0, compaction.State{InFlight: &held}); err != nil {
		t.Fatal(err)
	}
	if c.Consider(t.Context(), thread, log) || d.started() != 0 {
		t.Fatal("started beside another one")
	}
	d.pass(59_000_000_000)
	if c.Consider(t.Context(), thread, log) || d.started() != 0 {
		t.Fatal("started before its deadline")
	}
	state, _, err := memory.Load(thread)
	if err != nil || state.InFlight == nil || state.InFlight.ID != "theirs" {
		t.Fatalf("theirs was touched: %+v (%v)", state, err)
	}
	d.pass(3_000_000_000)
	c.Consider(t.Context(), thread, log)
	d.pass(3_000_000_000)
	if !c.Consider(t.Context(), thread, log) {
		t.Fatalf("waits for ever: %+v", d.last(t))
	}
	consume(t, c, log, d.run())
	if c.Total(thread) != 1 {
		t.Errorf("told %v", d.kinds())
	}
}

// Fixed: four characters a token is too much for prose and too little for code.
func characters(t *testing.T) {
	t.Helper()
	prose, code := strings.Repeat("word and phrase ", 250), strings.Repeat("x[i]=f(a,b);\t// ", 250)
	few, many := compaction.Estimate([]abi.Message{user("u", prose)}), compaction.Estimate([]abi.Message{user("u", code)})
	if few < 600 || few > 1000 || many < 1500 || many > 4000 {
		t.Errorf("4000 characters of prose have %d tokens, of code %d", few, many)
	}
}

func truncateSystemOnly(t *testing.T) {
	t.Helper()
	view := []abi.Message{system("s", words(100)), system("s2", words(100))}
	if got := compaction.Truncate(view, 1); !reflect.DeepEqual(got, view) {
		t.Errorf("cut to %v", ids(got))
	}
}

func truncateToolOnly(t *testing.T) {
	t.Helper()
	view := []abi.Message{result("r", "x", words(50)), result("r2", "y", words(50))}
	if got := compaction.Truncate(view, 10); len(got) != 2 {
		t.Errorf("cut to %v", ids(got))
	}
}

// Fixed: what tools, system prompt and answer need is reserved in the policy, and
// what they really cost is learnt from the bills.
func truncateReserve(t *testing.T) {
	t.Helper()
	log := rounds(60)
	sizes := make([]int64, 2)
	for i, reserve := range []int64{100, 1500} {
		c := newDesk().at(t, says("x"), func(cfg *compaction.Config) {
			cfg.Policy = compaction.Policy{WindowTokens: 3000, ReserveTokens: reserve, ThresholdTokens: 1000, KeepRecentTokens: 10, SummaryTokens: 100}
		})
		sizes[i] = compaction.Estimate(c.View(thread, log))
	}
	if sizes[0] > 2900 || sizes[1] > 1500 || sizes[1] < 1200 {
		t.Errorf("cut to %v tokens", sizes)
	}
}

// A message that is larger than the budget by itself: a tool's output loses its
// middle; what the user says is not touched.
func truncateLarge(t *testing.T) {
	t.Helper()
	view := []abi.Message{assistant("a", words(50)), user("u", "look"), calls("m", "c"), result("r", "c", words(50_000))}
	got := compaction.Truncate(view, 1000)
	if compaction.Estimate(got) > 1000 || !slices.Equal(ids(got), ids(view)) {
		t.Errorf("cut to %v, %d tokens", ids(got), compaction.Estimate(got))
	}
	view = []abi.Message{assistant("a", words(50)), user("u", words(5000))}
	if got := compaction.Truncate(view, 1000); got[len(got)-1].Text() != view[1].Text() {
		t.Error("the request was cut")
	}
}

func truncateShort(t *testing.T) {
	t.Helper()
	view := []abi.Message{user("u", words(500))}
	if got := compaction.Truncate(view, 1); !reflect.DeepEqual(got, view) {
		t.Errorf("cut to %v", ids(got))
	}
}

// The newest message alone is over the threshold. There is nothing to summarize, and
// that is reported once, costs no attempt, and is not asked of anybody.
func keptIsLarger(t *testing.T) {
	t.Helper()
	d := newDesk()
	c := d.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		t.Error("the summarizer was asked")
		return nil, nil
	}), nil)
	log := []abi.Message{user("u", words(5000))}
	for range 50 {
		if c.Consider(t.Context(), thread, log) {
			t.Fatal("started")
		}
	}
	if len(d.events) != 1 || d.last(t).Decision.Reason != abi.ReasonNoPreparation || d.last(t).Decision.AttemptCount != 0 {
		t.Errorf("told %+v", d.events)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	log := rounds(40)
	p := compaction.Policy{KeepRecentTokens: 600, KeepRecentMessages: 3, MinRangeTokens: 100}
	recent, ok := compaction.Plan(log, nil, p)
	p.Mode = compaction.SafeFrontier
	frontier, ok2 := compaction.Plan(log, nil, p)
	if !ok || !ok2 {
		t.Fatal("nothing to summarize")
	}
	// Three messages stay, and the pair that they cut stays whole.
	if kept := log[frontier.To+1:]; len(kept) != 4 || kept[0].Role != abi.RoleAssistant {
		t.Errorf("the frontier leaves %v", ids(kept))
	}
	if n := compaction.Estimate(log[recent.To+1:]); n < 600 || n > 750 || recent.To >= frontier.To {
		t.Errorf("%d tokens are kept, up to %d and %d", n, recent.To, frontier.To)
	}
	if _, err := compaction.New(compaction.Config{Policy: compaction.Policy{Mode: "all"}, Summarizer: says("x"), Spawn: newDesk().spawn}); err == nil ||
		!strings.Contains(err.Error(), "keep_recent_raw_suffix or compact_to_safe_frontier") {
		t.Errorf("got %v", err)
	}
}

// The policy is swapped while the one before is at work: its result counts, and the
// next compaction is the new one's.
func TestPolicySwappedInFlight(t *testing.T) {
	t.Parallel()
	d := newDesk()
	current := says("from the old one")
	c := d.at(t, scripted(func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
		s := current
		current = says("from the new one") // it is swapped while the call is under way
		return s(ctx, r)
	}), nil)
	log := filler()
	for i := range 2 {
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, d.run())
		log = append(log, assistant(fmt.Sprintf("x%d", i), words(1500)), user(fmt.Sprintf("y%d", i), "go on"))
	}
	m := c.Markers(thread)
	if len(m) != 2 || m[0].Summary != "from the old one" || m[1].Summary != "from the new one" {
		t.Errorf("markers %+v", m)
	}
	checkView(t, log, c.View(thread, log), newest(c))
}
