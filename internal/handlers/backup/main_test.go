package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"testing"

	"github.com/jmoiron/sqlx"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func openSQLite(t *testing.T, path string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
