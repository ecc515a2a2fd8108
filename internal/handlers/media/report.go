package media

// Report is what Check found.
type Report struct {
	Pictures int64 // rows that should have thumbnails
	// Missing are renditions that pages may link to and that are not there;
	// Lost are originals that are not there.
	Missing, Lost []string
	// Orphans look like thumbnails (name-150x150.jpg, name-thumb.jpg), but neither
	// a row, in the CMS's bin or not, nor a file is their original; or, if asked
	// for, their size is no longer wanted.
	Orphans []Orphan
	// Removed counts orphans that were deleted.
	Removed int
}

// Orphan is a file that nothing needs.
type Orphan struct {
	Key  string
	Size int64
}

type checker struct {
	plan      plan
	files     map[string]int64
	needed    map[string]bool // keys that a row needs
	originals map[string]bool
	report    *Report
}
