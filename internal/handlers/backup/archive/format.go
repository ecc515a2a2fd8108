package archive

import (
	"fmt"
	"strings"
)

// Format is how an archive is packed; it is also the end of its name.
type Format string

// The formats, best first.
const (
	TarZstd Format = "tar.zst"
	TarGzip Format = "tar.gz"
	Zip     Format = "zip"
)

// encrypted is put after the format's own ending.
const encrypted = ".age"

// ParseFormat reads what people write: zstd, gzip, zip or a file's ending.
func ParseFormat(s string) (Format, error) {
	switch strings.ToLower(s) {
	case "", "zstd", "zst", "tar.zst":
		return TarZstd, nil
	case "gzip", "gz", "tar.gz", "tgz":
		return TarGzip, nil
	case "zip":
		return Zip, nil
	}
	return "", fmt.Errorf("%q is no compression: use zstd, gzip or zip", s)
}

// Ending is how the name of an archive of this format ends, with its dot.
func (f Format) Ending(encrypt bool) string {
	if encrypt {
		return "." + string(f) + encrypted
	}
	return "." + string(f)
}

// Detect finds format and encryption in an archive's name; base is the rest.
func Detect(name string) (base string, f Format, encrypt, ok bool) {
	name, encrypt = strings.CutSuffix(name, encrypted)
	for _, f := range []Format{TarZstd, TarGzip, Zip} {
		if base, ok := strings.CutSuffix(name, "."+string(f)); ok {
			return base, f, encrypt, true
		}
	}
	return "", "", false, false
}
