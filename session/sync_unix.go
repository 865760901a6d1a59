//go:build unix

package session

import "errors"

// sync waits until the names in a folder are on the disk.
func (d *Dir) sync(name string) error {
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
