package ledger

func (p *page) values() []string     { return nil }
func (p *page) statements() []string { return nil }
