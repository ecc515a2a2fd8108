package storage

import (
	"fmt"
	"io/fs"
	"strings"
)

// maxKey is S3's limit on the length of a key, in bytes.
const maxKey = 1024

// tempPrefix begins the names of files that Local is still writing. No key
// may have a part that begins with it.
const tempPrefix = ".cmsjobs-tmp-"

// Unfinished says whether a path is that of a file which a Local is still writing.
func Unfinished(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, tempPrefix) {
			return true
		}
	}
	return false
}

// keyError says why a key is none. It is ErrKey.
type keyError string

func (e keyError) Error() string        { return string(e) }
func (e keyError) Is(target error) bool { return target == ErrKey }

// CheckKey says what is wrong with a key: it must be a relative,
// slash-separated path without empty, "." or ".." parts. Its error
// is ErrKey.
func CheckKey(key string) error {
	switch {
	case key == "." || !fs.ValidPath(key) || len(key) > maxKey:
		return keyError(fmt.Sprintf("%.100q is no key: a relative path of at most %d bytes in UTF-8 is needed", key,
			maxKey))
	case strings.ContainsAny(key, "\x00\\"):
		return keyError(fmt.Sprintf("%.100q is no key: it has a backslash or a NUL", key))
	}
	if Unfinished(key) {
		return keyError(fmt.Sprintf("%.100q is no key: names that begin with %s are the store's own", key, tempPrefix))
	}
	return nil
}
