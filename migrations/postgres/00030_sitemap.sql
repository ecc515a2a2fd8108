-- +goose Up
-- What the last sitemap of a target was made of, so that a run in which
-- nothing changed can say so and stop.
-- +goose StatementBegin
CREATE TABLE cmsjobs_sitemap_state (
    target       VARCHAR(191) NOT NULL PRIMARY KEY,
    fingerprint  VARCHAR(64)  NOT NULL,
    summary      TEXT         NOT NULL,
    generated_at BIGINT       NOT NULL
);
-- +goose StatementEnd

-- The addresses that a consumer of changes knows (indexnow: what IndexNow has
-- accepted; purge: what caches know), and what they were like then.
-- hash is FNV-1a of the address, stamp of what a reader would see changed.
-- +goose StatementBegin
CREATE TABLE cmsjobs_known_urls (
    consumer VARCHAR(16) NOT NULL,
    hash     BIGINT NOT NULL,
    url      TEXT   NOT NULL,
    stamp    BIGINT NOT NULL,
    noted_at BIGINT NOT NULL,
    PRIMARY KEY (consumer, hash)
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_known_urls;
DROP TABLE cmsjobs_sitemap_state;
