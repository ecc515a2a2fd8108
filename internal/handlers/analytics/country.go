package analytics

import (
	"fmt"
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"
)

// Countries finds countries in a database file of the MaxMind format (.mmdb):
// GeoLite2, DB-IP, or the flat ones of ip-location-db.
type Countries struct{ reader *maxminddb.Reader }

// OpenCountries opens such a file. The caller closes it.
func OpenCountries(path string) (*Countries, error) {
	r, err := maxminddb.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the database of countries %s: %w", path, err)
	}
	return &Countries{r}, nil
}

// Close closes the file.
func (c *Countries) Close() error { return c.reader.Close() }

// Country is the ISO 3166 code of an address's country, "" when unknown.
func (c *Countries) Country(a netip.Addr) string {
	result := c.reader.Lookup(a.Unmap())
	for _, path := range [][]any{{"country", "iso_code"}, {"country_code"}, {"country"}, {"registered_country", "iso_code"}} {
		var code string
		if err := result.DecodePath(&code, path...); err == nil && len(code) == 2 {
			return code
		}
	}
	return ""
}
