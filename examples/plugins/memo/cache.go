package main

import (
	"sort"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// Bounds. A host takes 256 KiB for one value of a plugin's state.
const (
	maxBytes       = 200 << 10
	defaultAge     = 30
	msPerMinute    = 60_000
	bytesPerRecord = 64 // names of fields and numbers
)

// cache is what memo keeps of a thread.
type cache struct {
	records []record // oldest first
}

// record is one remembered call.
type record struct {
	tool, key, text string
	at              int64
}

// load reads the cache from the plugin's state, without what is too old. Records that
// memo did not write in this form are dropped.
func load(state map[string]any, config any, now int64) *cache {
	c := &cache{}
	list, _ := state[keyCache].([]any)
	oldest := now - mortise.IntOr(config, "max_age_minutes", defaultAge)*msPerMinute
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		at, known := fields["at"].(int64)
		if r := (record{tool: str(fields["tool"]), key: str(fields["key"]), text: str(fields["text"]), at: at}); known && at >= oldest {
			c.records = append(c.records, r)
		}
	}
	return c
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// find returns what a call answered.
func (c *cache) find(key string) (text string, ok bool) {
	for i := range c.records {
		if c.records[i].key == key {
			return c.records[i].text, true
		}
	}
	return "", false
}

// put remembers a call, and forgets the oldest ones when there are too many.
func (c *cache) put(r record, limit int) {
	c.drop(func(o *record) bool { return o.key == r.key })
	c.records = append(c.records, r)
	size := 0
	for i := len(c.records) - 1; i >= 0; i-- {
		size += bytesPerRecord + len(c.records[i].tool) + len(c.records[i].key) + len(c.records[i].text)
		if size > limit {
			c.records = c.records[i+1:]
			return
		}
	}
}

// drop forgets the records that ok reports, and returns how many they were.
func (c *cache) drop(ok func(*record) bool) int {
	kept := c.records[:0]
	for i := range c.records {
		if !ok(&c.records[i]) {
			kept = append(kept, c.records[i])
		}
	}
	dropped := len(c.records) - len(kept)
	c.records = kept
	return dropped
}

// update is the change of state that keeps the cache.
func (c *cache) update() mortise.Update {
	list := make([]any, len(c.records))
	for i, r := range c.records {
		list[i] = map[string]any{"tool": r.tool, "key": r.key, "text": r.text, "at": r.at}
	}
	return mortise.Update{Key: keyCache, Op: mortise.OpSet, Value: list}
}

// tools lists the tools of the records, each once.
func (c *cache) tools() []string {
	seen := map[string]bool{}
	var out []string
	for i := range c.records {
		if name := c.records[i].tool; !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}
