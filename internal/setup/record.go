package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Record is what Apply did, so that Remove can undo it.
type Record struct {
	Dir     string  `json:"dir"` // the CMS's
	Way     Way     `json:"way"`
	Name    string  `json:"name"`
	Account Account `json:"account"`
	Program string  `json:"program"`
	Config  string  `json:"config"`
	// Files are those that were written, with the SHA-256 of their text.
	Files []Written `json:"files"`
	// Folders were made, the outermost first.
	Folders  []string   `json:"folders,omitempty"`
	CronLine string     `json:"cron_line,omitempty"`
	Log      string     `json:"log,omitempty"`
	Stop     [][]string `json:"stop,omitempty"`
	// Places are folders of the site that were not there before the first jobs.
	Places []string `json:"places,omitempty"`
	// Tables says that the cmsjobs_* tables were not there before.
	Tables bool `json:"tables"`
	// RollbackJournal says that the CMS's SQLite file had no write-ahead log.
	RollbackJournal bool `json:"rollback_journal,omitempty"`
	// Backup is the first backup, Sitemap says that the first map was made.
	Backup  string `json:"backup,omitempty"`
	Sitemap bool   `json:"sitemap,omitempty"`

	path, prefix string
}

// Written is a file with the SHA-256 of what was written.
type Written struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// ErrNotSetUp says that no setup is recorded.
var ErrNotSetUp = errors.New("no setup is recorded here")

// Find reads the record of a service's setup for the CMS in dir from one of the
// folders in which records lie. name "" takes any.
func Find(prefix, dir, name string, folders ...string) (*Record, error) {
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(prefix, folder, "setup-*.json"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("reading what setup did: %w", err)
			}
			var r Record
			if err := json.Unmarshal(text, &r); err != nil {
				return nil, fmt.Errorf("%s is no record of a setup: %w", path, err)
			}
			if r.Dir == dir && (name == "" || r.Name == name) {
				r.path, r.prefix = path, prefix
				return &r, nil
			}
		}
	}
	return nil, fmt.Errorf("%w for %s", ErrNotSetUp, dir)
}

// Save writes the record whole.
func (r *Record) Save() error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	staged := r.path + ".new"
	if err := os.WriteFile(staged, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("recording what is done: %w", err)
	}
	if err := os.Rename(staged, r.path); err != nil {
		return fmt.Errorf("recording what is done: %w", err)
	}
	return nil
}

// ConfigPath is where the configuration is for this program.
func (r *Record) ConfigPath() string { return r.at(r.Config) }

func (r *Record) at(path string) string { return filepath.Join(r.prefix, filepath.FromSlash(path)) }

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// unchanged says whether a file is as it was written; there is false where it is gone.
func unchanged(path, want string) (same, there bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	return err == nil && sum(text) == want, true, err
}
