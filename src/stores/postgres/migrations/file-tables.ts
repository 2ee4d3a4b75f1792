/** Callers' files and their bytes, and the outcomes of the requests of batches. */
export const FILE_TABLES: readonly string[] = [
  `CREATE TABLE files (
    id text NOT NULL,
    account_id text NOT NULL,
    purpose text NOT NULL,
    filename text NOT NULL,
    byte_length bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (account_id, id)
  )`,
  `CREATE INDEX files_by_time ON files (account_id, created_at_ms, id)`,
  `CREATE INDEX files_by_expiry ON files (expires_at_ms)`,
  `CREATE TABLE blobs (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL,
    is_whole boolean NOT NULL DEFAULT false,
    byte_length bigint NOT NULL DEFAULT 0,
    expires_at_ms bigint NOT NULL
  )`,
  `CREATE UNIQUE INDEX blobs_by_id ON blobs (id) WHERE is_whole`,
  `CREATE INDEX blobs_by_expiry ON blobs (expires_at_ms)`,
  `CREATE TABLE blob_rows (
    blob bigint NOT NULL REFERENCES blobs (number) ON DELETE CASCADE,
    place integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (blob, place)
  )`,
  `CREATE TABLE batch_outcomes (
    batch_id text NOT NULL,
    line integer NOT NULL,
    is_answered integer NOT NULL,
    text text NOT NULL,
    usage text,
    amount text NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (batch_id, line)
  )`,
  `CREATE INDEX batch_outcomes_by_expiry ON batch_outcomes (expires_at_ms)`,
]

/** Media types of files. */
export const FILE_TYPES: readonly string[] = ['ALTER TABLE files ADD COLUMN mime_type text']
