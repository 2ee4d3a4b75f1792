import { BUCKET_NAMES, LATER_METER_NAMES, modelDaysOfHours } from '../usage-columns.ts'

/** Columns of every table of sums in the migration. */
const SUMS = `  requests               INTEGER NOT NULL,
  failed                 INTEGER NOT NULL,
  abandoned              INTEGER NOT NULL,
  estimated              INTEGER NOT NULL,
  duration_ms            INTEGER NOT NULL,
  due                    INTEGER NOT NULL,
  charged                INTEGER NOT NULL,
  input_tokens           INTEGER NOT NULL,
  cached_input_tokens    INTEGER NOT NULL,
  cache_write_tokens     INTEGER NOT NULL,
  cache_write_1h_tokens  INTEGER NOT NULL,
  output_tokens          INTEGER NOT NULL,
  reasoning_tokens       INTEGER NOT NULL,
  input_image_tokens     INTEGER NOT NULL,
  input_audio_tokens     INTEGER NOT NULL,
  output_image_tokens    INTEGER NOT NULL,
  images                 INTEGER NOT NULL,
  video_milliseconds     INTEGER NOT NULL,
  characters             INTEGER NOT NULL,
  web_searches           INTEGER NOT NULL,
`
const BUCKETS = BUCKET_NAMES.map((column) => `${column} INTEGER NOT NULL`).join(', ')

/** Records of calls, in the order in which they were written, and their sums. `mark`: last counted record. */
export const USAGE_MIGRATION = `
CREATE TABLE signalbox_usage (
  number                 INTEGER PRIMARY KEY AUTOINCREMENT,
  id                     TEXT NOT NULL,
  account_id             TEXT NOT NULL,
  key_id                 TEXT NOT NULL,
  end_user               TEXT,
  tags                   TEXT,
  endpoint               TEXT NOT NULL,
  model                  TEXT NOT NULL,
  requested_model        TEXT NOT NULL,
  vendor                 TEXT,
  credential_id          TEXT,
  vendor_request_id      TEXT,
  ending                 TEXT NOT NULL,
  status                 INTEGER NOT NULL,
  code                   TEXT,
  is_stream              INTEGER NOT NULL,
  is_estimated           INTEGER NOT NULL,
  duration_ms            INTEGER NOT NULL,
  first_byte_ms          INTEGER,
  attempts               TEXT,
  ended_at_ms            INTEGER NOT NULL,
  due                    INTEGER NOT NULL,
  charged                INTEGER NOT NULL,
  input_tokens           INTEGER,
  cached_input_tokens    INTEGER,
  cache_write_tokens     INTEGER,
  cache_write_1h_tokens  INTEGER,
  output_tokens          INTEGER,
  reasoning_tokens       INTEGER,
  input_image_tokens     INTEGER,
  input_audio_tokens     INTEGER,
  output_image_tokens    INTEGER,
  images                 INTEGER,
  video_milliseconds     INTEGER,
  characters             INTEGER,
  web_searches           INTEGER
) STRICT;
CREATE INDEX signalbox_usage_by_time ON signalbox_usage (ended_at_ms);
CREATE INDEX signalbox_usage_by_account ON signalbox_usage (account_id, ended_at_ms);

CREATE TABLE signalbox_usage_hours (
  hour                   INTEGER NOT NULL,
  endpoint               TEXT NOT NULL,
  model                  TEXT NOT NULL,
  vendor                 TEXT NOT NULL,
${SUMS}  ${BUCKETS},
  PRIMARY KEY (hour, endpoint, model, vendor)
) STRICT, WITHOUT ROWID;

CREATE TABLE signalbox_usage_days (
  day                    INTEGER NOT NULL,
  account_id             TEXT NOT NULL,
  key_id                 TEXT NOT NULL,
  model                  TEXT NOT NULL,
  endpoint               TEXT NOT NULL,
  vendor                 TEXT NOT NULL,
${SUMS}  PRIMARY KEY (day, account_id, key_id, model, endpoint, vendor)
) STRICT, WITHOUT ROWID;

CREATE TABLE signalbox_usage_mark (mark INTEGER NOT NULL, as_of_ms INTEGER NOT NULL) STRICT;
INSERT INTO signalbox_usage_mark VALUES (0, 0);
`

/** Sums by UTC day of all accounts together, computed from those by hour. */
export const MODEL_DAYS_MIGRATION = `
CREATE TABLE signalbox_usage_model_days (
  day                    INTEGER NOT NULL,
  endpoint               TEXT NOT NULL,
  model                  TEXT NOT NULL,
  vendor                 TEXT NOT NULL,
${SUMS}  ${BUCKETS},
  PRIMARY KEY (day, endpoint, model, vendor)
) STRICT, WITHOUT ROWID;
${modelDaysOfHours('signalbox_')};
`

/** Columns of later meters. */
export const LATER_METERS_MIGRATION = LATER_METER_NAMES.map(
  (column) => `
ALTER TABLE signalbox_usage ADD COLUMN ${column} INTEGER;
ALTER TABLE signalbox_usage_hours ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_usage_model_days ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0;
ALTER TABLE signalbox_usage_days ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0;
`,
).join('')
