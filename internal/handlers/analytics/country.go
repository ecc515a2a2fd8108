package analytics

import (
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/oschwald/maxminddb-golang/v2"
)

// Countries finds countries in a database file of the MaxMind format (.mmdb):
// GeoLite2, DB-IP, or the flat ones of ip-location-db.
type Countries struct{ reader *maxminddb.Reader }

// maxCountries bounds the file, which is held in memory: one that is mapped ends the
// process when it is overwritten in place. Countries take 10 MB, cities 60 MB.
const maxCountries = 256 << 20

// OpenCountries reads such a file.
func OpenCountries(path string) (*Countries, error) {
	r, err := readCountries(path)
	if err != nil {
		return nil, fmt.Errorf("opening the database of countries %s: %w", path, err)
	}
	return &Countries{r}, nil
}

func readCountries(path string) (*maxminddb.Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCountries+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxCountries {
		return nil, fmt.Errorf("it is larger than %d MiB", maxCountries>>20)
	}
	return maxminddb.OpenBytes(data)
}

// Country is the ISO 3166 code of an address's country, "" when unknown.
func (c *Countries) Country(a netip.Addr) string {
	result := c.reader.Lookup(a.Unmap())
	for _, path := range [][]any{{"country", "iso_code"}, {"country_code"}, {"country"},
		{"registered_country", "iso_code"}} {
		var code string
		if err := result.DecodePath(&code, path...); err == nil && len(code) == 2 {
			return code
		}
	}
	return ""
}
