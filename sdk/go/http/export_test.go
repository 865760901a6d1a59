package http

// AppendRequest and ReadHeaders are the codec of the host's functions.
func AppendRequest(r Request) []byte { return appendRequest(nil, r) }

// ReadHeaders reads what the host writes.
func ReadHeaders(text string) map[string]string { return readHeaders(text) }
