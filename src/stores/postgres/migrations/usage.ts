import {
  firstColumns,
  LATER_METER_NAMES,
  METER_NAMES,
  modelDaysOfHours,
  RECORD_COLUMNS,
  ROLL_UPS,
  type RollUp,
} from '../../usage-columns.ts'

/** Types of a record's columns, for those that are not text. */
const TYPES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(METER_NAMES.map((column) => [column, 'integer'])),
  ...{ status: 'integer', duration_ms: 'integer', first_byte_ms: 'integer', is_stream: 'smallint' },
  ...{ is_estimated: 'smallint', ended_at_ms: 'bigint', due: 'bigint', charged: 'bigint' },
}

const NULLABLE = new Set([
  ...['end_user', 'tags', 'vendor', 'credential_id', 'vendor_request_id', 'code', 'first_byte_ms', 'attempts'],
  ...METER_NAMES,
])

function definition(column: string): string {
  return `${column} ${TYPES[column] ?? 'text COLLATE "C"'}`
}

/** Wide columns first, so that rows need little padding. */
const ORDERED = [...firstColumns(RECORD_COLUMNS)].sort((one, other) => widthOf(other) - widthOf(one))

function widthOf(column: string): number {
  return ['smallint', 'integer', 'bigint'].indexOf(TYPES[column] ?? 'text')
}

const RECORD_DEFINITIONS = RECORD_COLUMNS.map(definition).join(', ')

const [HOUR_SUMS, DAY_SUMS] = [ROLL_UPS.hours.sums, ROLL_UPS.days.sums].map((names) =>
  firstColumns(names)
    .map((column) => `${column} bigint NOT NULL`)
    .join(', '),
)

/** Columns selected from a record. For a charged record, time and amounts are those of the charge. */
const CHOSEN = RECORD_COLUMNS.map((column) => {
  if (column === 'ended_at_ms') return 'coalesce(p_now, r.ended_at_ms)'
  if (column === 'due') return 'coalesce(p_due, r.due)'
  if (column === 'charged') return 'coalesce(p_charged, r.charged)'
  return `r.${column}`
}).join(', ')

function addTo(table: RollUp, condition: string): string {
  const { keys, expressions, sums, sumExpressions } = ROLL_UPS[table]
  const places = keys.map((_, index) => index + 1).join(', ')
  const added = sums.map((column) => `${column} = s.${column} + excluded.${column}`).join(', ')
  return `INSERT INTO usage_${table} AS s (${[...keys, ...sums].join(', ')})
    SELECT ${expressions.join(', ')}, ${sumExpressions} FROM usage_records WHERE ${condition} GROUP BY ${places}
    ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${added};`
}

/**
 * Records of calls and their sums. Rows of different transactions do not become visible in the order of their numbers or times,
 * so the mark is a transaction id: a step counts the rows of transactions that ended before every running one began.
 */
export const USAGE_TABLES: readonly string[] = [
  `CREATE TABLE usage_records (
    number bigint GENERATED ALWAYS AS IDENTITY,
    tx bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    ${ORDERED.map((column) => `${definition(column)}${NULLABLE.has(column) ? '' : ' NOT NULL'}`).join(',\n    ')}
  )`,
  `CREATE INDEX usage_records_by_time ON usage_records (ended_at_ms, number)`,
  `CREATE INDEX usage_records_by_account ON usage_records (account_id, ended_at_ms, number)`,
  `CREATE INDEX usage_records_by_tx ON usage_records (tx)`,

  `CREATE TABLE usage_hours (
    hour bigint NOT NULL, endpoint text COLLATE "C" NOT NULL, model text COLLATE "C" NOT NULL, vendor text COLLATE "C" NOT NULL,
    ${HOUR_SUMS}, PRIMARY KEY (hour, endpoint, model, vendor)
  ) WITH (fillfactor = 70)`,
  `CREATE TABLE usage_days (
    day bigint NOT NULL, account_id text COLLATE "C" NOT NULL, key_id text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL, endpoint text COLLATE "C" NOT NULL, vendor text COLLATE "C" NOT NULL,
    ${DAY_SUMS}, PRIMARY KEY (day, account_id, key_id, model, endpoint, vendor)
  ) WITH (fillfactor = 70)`,
  `CREATE TABLE usage_mark (mark bigint NOT NULL, as_of_ms bigint NOT NULL)`,
  `INSERT INTO usage_mark VALUES (0, 0)`,
]

/** Sums by UTC day of all accounts together, computed from those by hour. */
export const MODEL_DAYS_TABLE: readonly string[] = [
  `CREATE TABLE usage_model_days (
    day bigint NOT NULL, endpoint text COLLATE "C" NOT NULL, model text COLLATE "C" NOT NULL, vendor text COLLATE "C" NOT NULL,
    ${HOUR_SUMS}, PRIMARY KEY (day, endpoint, model, vendor)
  ) WITH (fillfactor = 70)`,
  // Processes with the earlier functions find the mark locked, and add nothing meanwhile.
  `SELECT m.mark FROM usage_mark m FOR UPDATE`,
  modelDaysOfHours(''),
]

/** Columns of later meters. */
export const LATER_METERS: readonly string[] = [
  `ALTER TABLE usage_records ${LATER_METER_NAMES.map((column) => `ADD COLUMN ${column} integer`).join(', ')}`,
  ...['hours', 'model_days', 'days'].map(
    (table) =>
      `ALTER TABLE usage_${table} ${LATER_METER_NAMES.map((column) => `ADD COLUMN ${column} bigint NOT NULL DEFAULT 0`).join(', ')}`,
  ),
]

export const USAGE_FUNCTIONS: readonly string[] = [
  `CREATE FUNCTION write_usage(p_records jsonb, p_now bigint, p_due bigint, p_charged bigint) RETURNS void
  LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO usage_records (${RECORD_COLUMNS.join(', ')})
    SELECT ${CHOSEN} FROM jsonb_to_recordset(p_records) AS r(${RECORD_DEFINITIONS})
  $$`,

  // One process counts at a time; the others find the mark locked, and have nothing to do.
  `CREATE FUNCTION roll_up_usage(p_limit integer, p_now bigint, OUT added bigint, OUT as_of bigint)
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    v_mark bigint;
    v_settled bigint;
    v_end bigint;
  BEGIN
    added := 0;
    SELECT m.mark, m.as_of_ms INTO v_mark, as_of FROM usage_mark m FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      SELECT m.as_of_ms INTO as_of FROM usage_mark m;
      RETURN;
    END IF;
    v_settled := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    -- The rows of one transaction are counted together, however many they are.
    SELECT u.tx + 1 INTO v_end FROM usage_records u WHERE u.tx >= v_mark AND u.tx < v_settled
    ORDER BY u.tx LIMIT 1 OFFSET p_limit - 1;
    v_end := coalesce(v_end, v_settled);
    SELECT count(*) INTO added FROM usage_records u WHERE u.tx >= v_mark AND u.tx < v_end;
    IF added > 0 THEN
      ${addTo('hours', 'tx >= v_mark AND tx < v_end')}
      ${addTo('model_days', 'tx >= v_mark AND tx < v_end')}
      ${addTo('days', 'tx >= v_mark AND tx < v_end')}
    END IF;
    -- What is not counted yet began after the mark; its first row tells up to when the sums are complete.
    as_of := greatest(as_of, coalesce(
      (SELECT u.ended_at_ms FROM usage_records u WHERE u.tx >= v_end ORDER BY u.tx LIMIT 1), p_now));
    UPDATE usage_mark m SET mark = v_end, as_of_ms = as_of;
  END $$`,

  // Counting is blocked meanwhile, so that no record is counted twice or lost.
  `CREATE FUNCTION rebuild_usage(p_from bigint, p_until bigint) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  DECLARE
    v_mark bigint;
  BEGIN
    SELECT m.mark INTO v_mark FROM usage_mark m FOR UPDATE;
    DELETE FROM usage_hours WHERE hour >= p_from / ${ROLL_UPS.hours.length} AND hour < p_until / ${ROLL_UPS.hours.length};
    DELETE FROM usage_model_days
      WHERE day >= p_from / ${ROLL_UPS.model_days.length} AND day < p_until / ${ROLL_UPS.model_days.length};
    DELETE FROM usage_days WHERE day >= p_from / ${ROLL_UPS.days.length} AND day < p_until / ${ROLL_UPS.days.length};
    ${addTo('hours', 'ended_at_ms >= p_from AND ended_at_ms < p_until AND tx < v_mark')}
    ${addTo('model_days', 'ended_at_ms >= p_from AND ended_at_ms < p_until AND tx < v_mark')}
    ${addTo('days', 'ended_at_ms >= p_from AND ended_at_ms < p_until AND tx < v_mark')}
  END $$`,
]
