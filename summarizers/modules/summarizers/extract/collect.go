package extract

import (
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// collector turns messages into units.
type collector struct {
	cfg   Config
	lex   *lexicon
	units []unit
	seen  map[uint64]struct{}
	files map[string]uint8 // fileRead, fileModified or both, by name
	roots map[string]bool  // working directories
	// failures holds how calls failed, by id.
	failures map[string]uint8
	msg      int32
	total    int32
	budget   int // bytes that may still be read
	goal     bool
	failed   string // the test that failed last
}

func newCollector(cfg Config) *collector {
	return &collector{
		cfg: cfg, lex: newLexicon(), seen: make(map[uint64]struct{}, 1024),
		files: make(map[string]uint8), roots: make(map[string]bool), failures: make(map[string]uint8), budget: cfg.TotalCap,
	}
}

// Weights of speakers.
const (
	weightUser      = 1.0
	weightAssistant = 0.62
	weightArgument  = 0.8
	weightValue     = 0.5
	weightTool      = 0.22
	// goalMin is how many bytes a request has at least: "/model" is none.
	goalMin = 16
)

// messages reads a conversation. When it is longer than the total cap, the
// oldest messages beyond the first are skipped, as the newest matter most.
func (c *collector) messages(list []mortise.Message) {
	c.total = int32(len(list))
	first := len(list)
	for room := c.budget; first > 0; first-- {
		room -= c.size(&list[first-1])
		if room < 0 {
			break
		}
	}
	last := lastUser(list)
	c.outcomes(list)
	for i := range list {
		if i > 0 && i < first {
			continue
		}
		c.msg = int32(i)
		if i+1 < len(list) {
			c.block(&list[i], &list[i+1])
		}
		c.message(&list[i], i == last)
	}
}

func (c *collector) size(m *mortise.Message) int {
	n := 0
	for i := range m.Content {
		n += len(m.Content[i].Text)
	}
	if speaker(m) == byTool {
		return min(n, c.cfg.ResultCap)
	}
	return min(n, c.cfg.ProseCap)
}

func lastUser(list []mortise.Message) int {
	for i := len(list) - 1; i > 0; i-- {
		if speaker(&list[i]) == byUser {
			return i
		}
	}
	return -1
}

// speaker is who wrote a message. Agents without tool calls hand observations to
// the model as user messages; those count as a tool's.
func speaker(m *mortise.Message) string {
	switch m.Role {
	case mortise.RoleAssistant:
		return byAssistant
	case mortise.RoleTool:
		return byTool
	case mortise.RoleUser:
		if len(m.Content) > 0 && observation(m.Content[0].Text) {
			return byTool
		}
		return byUser
	case mortise.RoleSystem:
	}
	return ""
}

func observation(s string) bool {
	s = strings.TrimSpace(s)
	for _, p := range []string{"<returncode>", "<output>", "<observation>", "<stdout>", "<tool_result", "Observation:", "OBSERVATION:"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func (c *collector) message(m *mortise.Message, latest bool) {
	by := speaker(m)
	if by == "" || m.Visibility == mortise.VisibilityInternal {
		return
	}
	for i := range m.Content {
		if m.Content[i].Type != mortise.BlockText {
			continue
		}
		text := m.Content[i].Text
		if by == byTool {
			c.result(text)
		} else {
			c.prose(by, text, latest)
		}
	}
	for i := range m.ToolCalls {
		c.call(&m.ToolCalls[i])
	}
}

// capped is the head and the tail of a text.
func capped(s string, n int) (head, tail string) {
	if len(s) <= n {
		return s, ""
	}
	h := runeCut(s, n*2/3)
	t := len(s) - n/3
	for t < len(s) && s[t]&0xC0 == 0x80 {
		t++
	}
	return s[:h], s[t:]
}

func (c *collector) prose(by, text string, latest bool) {
	head, tail := capped(text, c.cfg.ProseCap)
	n, code := 0, false
	for _, part := range []string{head, tail} {
		sentences(part, func(s string) {
			if strings.HasPrefix(s, "```") {
				code = !code
				return
			}
			if code {
				c.unit(byAssistant, secPassages, s, 0.35, weightAssistant)
				return
			}
			n++
			c.sentence(by, s, n, latest)
		})
	}
	if by == byUser && len(strings.TrimSpace(text)) >= goalMin {
		c.goal = true
	}
}

// block reads the fenced block of an answer without tool calls that an
// observation follows: agents without tools run it as a command. A fenced block
// anywhere else is an example.
func (c *collector) block(m, next *mortise.Message) {
	if m.Role != mortise.RoleAssistant || len(m.ToolCalls) > 0 || next.Role != mortise.RoleUser || speaker(next) != byTool {
		return
	}
	_, code, ok := strings.Cut("\n"+m.Text(), "\n```")
	if !ok {
		return
	}
	lang, code, _ := strings.Cut(code, "\n")
	code, after, ok := strings.Cut(code, "\n```")
	if !ok || strings.Contains(after, "\n```") || !shellFence(strings.TrimSpace(lang)) {
		return
	}
	c.command(code, true)
}

func shellFence(lang string) bool {
	switch lang {
	case "", "sh", "shell", "console":
		return true
	}
	return strings.Contains(lang, "bash")
}

func (c *collector) sentence(by, s string, n int, latest bool) {
	s = unmarked(tidy(s, true))
	if len(s) < 3 {
		return
	}
	role, sec := float32(weightAssistant), sectionOf(by, s)
	factor := float32(1)
	if by == byUser {
		role = weightUser
		if sec != secConstraints && len(s) >= goalMin && (!c.goal && n <= 3 || latest && n <= 2) {
			sec, factor = secGoal, 1.5
		}
	}
	factor *= c.recency()
	clauses(s, func(part string) {
		c.unit(by, sec, part, factor*statement(by, part), role)
	})
	first := len(c.units)
	notes(s, func(part string) { c.unit(by, secNotes, part, c.recency(), role) })
	c.derive(first)
}

// derive marks the units from the n-th on as notes on others.
func (c *collector) derive(n int) {
	for i := n; i < len(c.units); i++ {
		c.units[i].derived = true
	}
}

// recency is 0.9 for the oldest and 1.1 for the newest message.
func (c *collector) recency() float32 {
	if c.total < 2 {
		return 1
	}
	return 0.9 + 0.2*float32(c.msg)/float32(c.total-1)
}

// result reads a tool result: error lines for the errors section, the rest as
// low-valued passages whose identifiers count when someone mentions them.
func (c *collector) result(text string) {
	if t := strings.TrimSpace(text); t != "" && (t[0] == '{' || t[0] == '[') {
		head, _ := capped(t, c.cfg.ResultCap)
		jsonValues(head, func(k, v string) {
			if k != "" && len(k) < 40 && namesThing(v) {
				c.unit(byTool, secIdents, label(k)+": "+v, c.recency(), weightValue)
			}
		})
		jsonRuns(head, func(s string) { c.unit(byTool, secPassages, s, 0.5*c.recency(), weightTool) })
		return
	}
	head, tail := capped(text, c.cfg.ResultCap)
	for _, part := range []string{head, tail} {
		for line := range strings.SplitSeq(part, "\n") {
			line = tidy(line, false)
			if len(line) < 4 {
				continue
			}
			if errorLine(line) {
				c.failure(line)
				continue
			}
			clauses(line, func(s string) { c.unit(byTool, secPassages, s, 0.4*c.recency(), weightTool) })
		}
	}
}

// failure keeps a line that tells of one: of a test and its parts that of the test.
func (c *collector) failure(line string) {
	if test, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
		name, _, part := strings.Cut(firstWord(test), "/")
		if part && name == c.failed {
			return
		}
		c.failed = name
	}
	c.unit(byTool, secErrors, line[:runeCut(line, 240)], c.recency(), weightAssistant)
}

// unit adds a unit, unless the same text is there already.
func (c *collector) unit(by string, sec section, text string, factor, role float32) {
	h := hash(fnvBasis^uint64(sec.kind()), text)
	_, dup := c.seen[h]
	if dup && sec != secGoal {
		return
	}
	c.seen[h] = struct{}{}
	u := unit{text: text, by: by, sec: sec, factor: factor, msg: c.msg, ord: int32(len(c.units)), old: by == byEarlier}
	u.concepts = c.lex.concepts(make([]int32, 0, 8), text)
	c.lex.units++
	for _, id := range u.concepts {
		k := &c.lex.list[id]
		k.units++
		k.role = max(k.role, role)
		if role > weightTool && k.last != c.msg {
			k.calls++
			k.last = c.msg
		}
	}
	if len(u.concepts) > 0 {
		c.units = append(c.units, u)
	}
}
