package folder

import (
	"errors"
	"io"
	"os"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func Read(folder, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	// Asked before opening, because opening a named pipe waits for its writer.
	info, err := root.Stat(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		return nil, jobs.Permanent(err)
	}
	if !info.Mode().IsRegular() {
		return nil, jobs.Permanent(errors.New("it is not a regular file"))
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return ReadAll(f, limit)
}

func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, jobs.Permanent(errors.New("the attachments are larger than mail.max_size allows: send a link"))
	}
	return content, nil
}
