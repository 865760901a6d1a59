package model

// AppendHead and ReadInfo are for tests.
func AppendHead(out []byte, q Question) []byte { return appendHead(out, q) }

// ReadInfo is readInfo.
func ReadInfo(text string) RoleInfo { return readInfo(text) }
