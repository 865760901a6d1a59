package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// file is a file of an archive.
type file struct {
	path string // where it is read
	name string // in the archive, below its folder
	mode fs.FileMode
}

// writeTar writes a compressed tar archive with all files in one folder.
func writeTar(path, folder string, files []file, at time.Time) error {
	return create(path, func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		t := tar.NewWriter(z)
		for _, f := range files {
			data, err := os.ReadFile(f.path)
			if err != nil {
				return err
			}
			h := &tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(data)), ModTime: at, Format: tar.FormatPAX}
			if err := t.WriteHeader(h); err != nil {
				return err
			}
			if _, err := t.Write(data); err != nil {
				return err
			}
		}
		return errors.Join(t.Close(), z.Close())
	})
}

// writeZip writes a zip archive with all files in one folder.
func writeZip(path, folder string, files []file, at time.Time) error {
	return create(path, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, f := range files {
			data, err := os.ReadFile(f.path)
			if err != nil {
				return err
			}
			h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: at}
			h.SetMode(f.mode)
			part, err := z.CreateHeader(h)
			if err != nil {
				return err
			}
			if _, err := part.Write(data); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
