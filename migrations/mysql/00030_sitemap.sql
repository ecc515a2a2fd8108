-- +goose Up
-- What the last sitemap of a target was made of, so that a run in which
-- nothing changed can say so and stop.
CREATE TABLE cmsjobs_sitemap_state (
    target       VARCHAR(191) NOT NULL PRIMARY KEY,
    fingerprint  VARCHAR(64)  NOT NULL,
    summary      TEXT         NOT NULL,
    generated_at BIGINT       NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- The addresses that IndexNow has accepted, and what they were like then.
-- hash is FNV-1a of the address, stamp of what a reader would see changed.
CREATE TABLE cmsjobs_indexnow_urls (
    hash         BIGINT NOT NULL PRIMARY KEY,
    url          TEXT   NOT NULL,
    stamp        BIGINT NOT NULL,
    submitted_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_indexnow_urls;
DROP TABLE cmsjobs_sitemap_state;
