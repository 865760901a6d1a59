package natsstore

// load replaces a thread by a snapshot. Entries that are in memory stay there if no message was missed.
func (s *state) load(t *thread, snap *snapshot, seq uint64, missed bool) {
	old := map[string]*log{}
	if !missed && !t.damaged {
		old, t.logs = t.logs, old
	}
	s.clear(t)
	t.exists, t.revision, t.applied = true, snap.Revision, snap.Applied
	for _, c := range snap.Cells {
		s.put(t, c)
	}
	for _, r := range snap.Logs {
		l := r.log(seq)
		if known := old[r.Name]; known != nil {
			l.reuse(known)
			delete(old, r.Name)
		}
		t.logs[r.Name] = l
	}
	for _, l := range old {
		for i := range l.entries {
			s.memory += len(l.entries[i].data)
		}
	}
}

// log makes the log of a snapshot.
func (r *logRecord) log(seq uint64) *log {
	l := &log{after: r.After}
	for _, record := range r.Chunks {
		c := &chunk{seq: record.Seq, parts: record.Parts, count: record.Count}
		if record.Back > 0 {
			c.seq = seq - record.Back
		}
		for i := record.Skip; i < record.Count; i++ {
			l.entries = append(l.entries, entry{chunk: c, index: int(i)}) //nolint:gosec // it is small
		}
	}
	return l
}

// reuse takes the data of the same log as it was before the snapshot.
func (l *log) reuse(known *log) {
	for i := range min(len(l.entries), len(known.entries)) {
		l.entries[i].data = known.entries[i].data
	}
}
