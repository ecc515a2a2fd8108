package demo

import (
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// spell writes one of the demo's statements as MySQL wants it.
func spell(d database.Dialect, statement string) string {
	if d.Name != database.MySQL {
		return statement
	}
	return strings.NewReplacer("INTEGER PRIMARY KEY", "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY",
		" TIMESTAMP", " TIMESTAMP NULL",
		" TEXT", " LONGTEXT", `"`, "`", `\`, `\\`).Replace(statement)
}

// demoTables are the CMS's tables, as far as the jobs read them.
var demoTables = []string{
	`CREATE TABLE settings (id INTEGER PRIMARY KEY, "key" VARCHAR(255) NOT NULL UNIQUE, value TEXT, created_at
		TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
	`CREATE TABLE pages (id INTEGER PRIMARY KEY, name VARCHAR(120) NOT NULL, content TEXT, user_id BIGINT, image
		VARCHAR(255), template VARCHAR(60), description VARCHAR(400), status VARCHAR(60) NOT NULL DEFAULT 'published',
		created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
	`CREATE TABLE posts (id INTEGER PRIMARY KEY, name VARCHAR(255) NOT NULL, description TEXT, content TEXT, status
		VARCHAR(60) NOT NULL DEFAULT 'published', author_id BIGINT, author_type VARCHAR(255), is_featured TINYINT NOT
		NULL DEFAULT 0, image VARCHAR(255), views INT NOT NULL DEFAULT 0, format_type VARCHAR(30), created_at
		TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
	`CREATE TABLE categories (id INTEGER PRIMARY KEY, name VARCHAR(120) NOT NULL, parent_id BIGINT NOT NULL DEFAULT 0,
		description TEXT, status VARCHAR(60) NOT NULL DEFAULT 'published', "order" INT NOT NULL DEFAULT 0, is_featured
		TINYINT NOT NULL DEFAULT 0, is_default TINYINT NOT NULL DEFAULT 0, created_at TIMESTAMP NULL,
		updated_at TIMESTAMP NULL)`,
	`CREATE TABLE tags (id INTEGER PRIMARY KEY, name VARCHAR(120) NOT NULL, description TEXT, status VARCHAR(60) NOT
		NULL DEFAULT 'published', created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
	`CREATE TABLE post_categories (category_id BIGINT NOT NULL, post_id BIGINT NOT NULL)`,
	`CREATE TABLE post_tags (tag_id BIGINT NOT NULL, post_id BIGINT NOT NULL)`,
	`CREATE TABLE slugs (id INTEGER PRIMARY KEY, "key" VARCHAR(255) NOT NULL, reference_id BIGINT NOT NULL,
		reference_type VARCHAR(255) NOT NULL, prefix VARCHAR(120) DEFAULT '', created_at TIMESTAMP NULL, updated_at
		TIMESTAMP NULL)`,
	`CREATE INDEX slugs_reference_index ON slugs (reference_id, reference_type)`,
	`CREATE TABLE media_files (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL DEFAULT 1, name VARCHAR(255) NOT NULL,
		alt VARCHAR(255), folder_id BIGINT NOT NULL DEFAULT 0, mime_type VARCHAR(120) NOT NULL, size INT NOT NULL, url
		VARCHAR(255) NOT NULL, options TEXT, created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL,
		deleted_at TIMESTAMP NULL,
		visibility VARCHAR(255) NOT NULL DEFAULT 'public')`,
	`CREATE TABLE media_folders (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, name VARCHAR(255), color
		VARCHAR(255), slug VARCHAR(255), parent_id BIGINT NOT NULL DEFAULT 0, created_at TIMESTAMP NULL, updated_at
		TIMESTAMP NULL, deleted_at TIMESTAMP NULL)`,
	`CREATE TABLE users (id INTEGER PRIMARY KEY, email VARCHAR(255) NOT NULL UNIQUE, first_name VARCHAR(120), last_name
		VARCHAR(120), username VARCHAR(60) UNIQUE, super_user TINYINT NOT NULL DEFAULT 0, created_at TIMESTAMP NULL,
		updated_at TIMESTAMP NULL)`,
	`CREATE TABLE cache ("key" VARCHAR(255) PRIMARY KEY, value TEXT NOT NULL, expiration BIGINT NOT NULL)`,
	`CREATE TABLE cache_locks ("key" VARCHAR(255) PRIMARY KEY, owner VARCHAR(255) NOT NULL,
		expiration BIGINT NOT NULL)`,
	`CREATE TABLE audit_histories (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, module VARCHAR(60) NOT NULL,
		request TEXT, action VARCHAR(120) NOT NULL, user_agent TEXT, ip_address VARCHAR(45), reference_id BIGINT NOT
		NULL, reference_name VARCHAR(255) NOT NULL, type VARCHAR(20) NOT NULL, created_at TIMESTAMP NULL, updated_at
		TIMESTAMP NULL)`,
	`CREATE TABLE admin_notifications (id INTEGER PRIMARY KEY, title VARCHAR(255) NOT NULL, action_label VARCHAR(255),
		action_url VARCHAR(255), description VARCHAR(400), read_at TIMESTAMP NULL, permission VARCHAR(255), created_at
		TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
	`CREATE TABLE job_batches (id VARCHAR(191) PRIMARY KEY, name VARCHAR(255) NOT NULL, total_jobs INTEGER NOT NULL,
		pending_jobs INTEGER NOT NULL, failed_jobs INTEGER NOT NULL, failed_job_ids TEXT NOT NULL, options TEXT,
		cancelled_at INTEGER, created_at INTEGER NOT NULL, finished_at INTEGER)`,
}
