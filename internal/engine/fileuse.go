package engine

import experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

// Mounted is an open folder that guests may use.
type Mounted interface {
	// Mount returns where the guest of one instance finds the folder, and the folder.
	Mount(user FileUser) (at string, fs experimentalsys.FS)
}

// FileUser is the instance whose guest uses files.
type FileUser interface {
	Spend(units int)
	// Open notes that WASI is about to hold another descriptor of the call.
	Open() *FileUse
}

// MaxOpenFiles bounds the files that an instance has open: those of the process
// are few.
const MaxOpenFiles = 64

// FileUse is what an instance does with files.
type FileUse struct {
	// Touched reports that a file was opened, for an engine that does not know.
	Touched bool
	// Files are open now.
	Files int
	// Written counts bytes of the call in progress.
	Written int64
}

// Room takes n bytes from what a call may write.
func (u *FileUse) Room(n int, limit int64) bool {
	if u.Written+int64(n) > limit {
		return false
	}
	u.Written += int64(n)
	return true
}
