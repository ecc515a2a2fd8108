package sitemap

import (
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

func zipped(name string) bool { return strings.HasSuffix(name, ".gz") }

func gunzip(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
