package transcript

// link follows the entries of a session across its compactions: a boundary
// begins one, and what descends from the boundary continues from its summary.
func (l *claudeLog) link(line int, c *claudeLine) {
	if _, repeated := l.under[c.UUID]; repeated || bool(c.IsSidechain) {
		return
	}
	if c.UUID != "" && !l.begun {
		l.begun = true
		l.main.draft.partial = c.ParentUUID != ""
	}
	cuts := &l.main.draft.cuts
	boundary := c.Subtype == "compact_boundary"
	if boundary || bool(c.IsCompactSummary) && !l.pending() {
		*cuts = append(*cuts, cut{Compaction: Compaction{Line: line, Time: moment(string(c.Timestamp))}})
		if m := c.CompactMetadata.value; m != nil {
			(*cuts)[len(*cuts)-1].TokensBefore = int64(m.PreTokens)
		}
	}
	if len(*cuts) == 0 || c.UUID == "" {
		return
	}
	n, known := l.under[string(c.ParentUUID)]
	if boundary || bool(c.IsCompactSummary) {
		n, known = len(*cuts), true
	}
	if !known {
		return
	}
	l.under[c.UUID] = n
	at := &(*cuts)[n-1]
	at.linked = at.linked || c.ParentUUID != ""
	if !bool(c.IsCompactSummary) && (c.Type == "user" || c.Type == "assistant") {
		at.Continued = true
	}
}

// pending reports a boundary whose summary was not read yet.
func (l *claudeLog) pending() bool {
	cuts := l.main.draft.cuts
	return len(cuts) > 0 && cuts[len(cuts)-1].Summary == ""
}

// summarized keeps the text of a summary. A session that begins with one holds
// nothing that it replaces.
func (l *claudeLog) summarized(c *claudeLine, text string) {
	cuts := l.main.draft.cuts
	if len(cuts) == 0 || bool(c.IsSidechain) {
		return
	}
	last := &cuts[len(cuts)-1]
	last.Summary = text
	last.void = len(l.main.draft.entries) == 0
	l.main.draft.partial = l.main.draft.partial || last.void
}
