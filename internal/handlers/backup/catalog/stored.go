package catalog

import (
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Stored is one backup at one destination. In a list, Tables and Warnings are
// left out; TableCount says how many there are.
type Stored struct {
	manifest.File
	Destination string          `json:"destination"`
	Key         string          `json:"key"` // without an ending
	Origin      manifest.Origin `json:"origin"`
	TableCount  int             `json:"table_count"`
	// Local is the path of a private copy of the archive, which is read instead.
	Local string `json:"-"`
	// WithoutFiles says that the files in a repository do not matter and are not read.
	WithoutFiles bool `json:"-"`
}

// Space is what the backup took at its destination: its archive, and what the repository
// grew by.
func (b Stored) Space() int64 {
	if b.Repository == nil {
		return b.Size
	}
	return b.Size + b.Repository.Added
}

// PartsInRepository says that the parts of the database are in the repository, not in the
// archive.
func (b Stored) PartsInRepository() bool {
	return b.Repository != nil && b.Repository.DatabaseBytes > 0
}

// Packed is what the backup takes without its files, where these are in a repository.
func (b Stored) Packed() int64 {
	if !b.PartsInRepository() {
		return b.Size
	}
	return b.Size + b.Repository.DatabaseBytes
}

// Contents says which parts of the site the backup has, for people.
func (b Stored) Contents() string {
	switch {
	case b.Database && b.Files:
		return "database and files"
	case b.Database:
		return "the database only"
	}
	return "the files only"
}

// Untrusted says what is wrong with a backup's origin; "" when it is known.
func (b Stored) Untrusted() string {
	switch {
	case b.Origin == manifest.Altered:
		return "THIS BACKUP WAS ALTERED: what its manifest file says is not what was signed or recorded when it was " +
			"made"
	case b.Origin == manifest.Unknown && b.SignedBy != "":
		return "THIS INSTALLATION NEVER MADE THIS BACKUP. It is signed by an unknown key, " + b.SignedBy +
			"; if that is the key of your old server, set backup.trusted_keys"
	case b.Origin == manifest.Unknown:
		return "THIS INSTALLATION NEVER MADE THIS BACKUP, and it is not signed. " +
			"Anyone who can write to the backup storage may have put it there"
	}
	return ""
}
