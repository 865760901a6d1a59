package engine

import experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

// mounted is an open folder that guests may use.
type Mounted interface {
	// Mount returns where the guest of one instance finds the folder, and the folder.
	Mount(user FileUser) (at string, fs experimentalsys.FS)
}

// fileUser is the instance whose guest uses files.
type FileUser interface {
	Spend(units int)
	// open notes that WASI is about to hold another descriptor of the call.
	Open() *FileUse
}

// maxOpenFiles bounds the files that an instance has open: those of the process
// are few.
const MaxOpenFiles = 64

// fileUse is what an instance does with files.
type FileUse struct {
	// touched tells that a file was opened, for an engine that does not know.
	Touched bool
	// files are open now.
	Files int
	// written counts bytes of the call in progress.
	Written int64
}

// room takes n bytes from what a call may write.
func (u *FileUse) Room(n int, limit int64) bool {
	if u.Written+int64(n) > limit {
		return false
	}
	u.Written += int64(n)
	return true
}
