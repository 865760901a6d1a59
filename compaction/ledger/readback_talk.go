package ledger

func (r *reader) values(it *item)    {}
func (r *reader) statement(it *item) {}
