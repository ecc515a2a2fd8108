package analytics

// Mapping names the columns of an existing table of raw views. Empty columns
// are unknown for every row.
type Mapping struct {
	Table                                                        string
	At                                                           string // datetime in the CMS's zone, or Unix seconds
	Path, Visitor, Referrer, Agent, Country, Site, Address, Host string
}
