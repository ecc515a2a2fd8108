package archive

import (
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
