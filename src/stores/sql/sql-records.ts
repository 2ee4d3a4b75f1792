import { DAY_MS, type UsageStore } from '../../usage/usage-store.ts'
import type { KeyRecord, KeyStore } from '../api-keys.ts'
import { AUDIT_DELETE_BATCH, AUDIT_RETENTION_MS, type AuditStore, auditDetails, auditEntryOf } from '../audit-store.ts'
import { assertAmount } from '../ledger.ts'
import type { InteractionRecord, InteractionStore } from '../response-cache.ts'
import type { SettingStore } from '../retention.ts'
import { capOf, capValues, optionalTimeOf, type SqlRow, type StoredKind, type StoredUsage } from '../sql-rows.ts'
import { RECORD_COLUMNS, ROLL_UPS, recordOf } from '../usage-columns.ts'
import {
  allOf,
  changedRows,
  deleteBefore,
  deleteSome,
  firstOf,
  isChanged,
  ownedRows,
  places,
  purgeOwned,
  SqlConditions,
  type SqlDialect,
  type SqlParameter,
  type SqlStore,
  type SqlWork,
  upsert,
} from './statements.ts'

const KEY_COLUMNS =
  'id, account_id, hash, label, scopes, limits, cap_amount, cap_period, names_end_users, created_at_ms, expires_at_ms, revoked_at_ms, replaces, tags'

/** Creates the store of API keys. */
export function sqlKeys(dialect: SqlDialect): SqlStore<KeyStore> {
  const table = dialect.table('keys')
  const id = dialect.inOrder('k.id')
  const select = `SELECT ${dialect.columns(KEY_COLUMNS, 'k')} FROM ${table} AS k`
  const [byHash, byId] = [`${select} WHERE k.hash = $1`, `${select} WHERE k.id = $1`]
  const insert = `INSERT INTO ${table} (${KEY_COLUMNS}) VALUES (${places(14)}) ON CONFLICT (hash) DO NOTHING`
  return {
    reads: ['findByHash', 'find', 'list', 'page'],
    work: {
      findByHash: (hash) => firstOf(keyOf, byHash, [hash]),
      find: (keyId) => firstOf(keyOf, byId, [keyId]),
      list(accountId) {
        const conditions = new SqlConditions().add('k.account_id = ?', accountId)
        const order = `ORDER BY k.created_at_ms, ${id}`
        return allOf(keyOf, `${select} ${conditions.where()} ${order}`, conditions.parameters)
      },
      page({ accountId, after, limit }) {
        const conditions = new SqlConditions()
          .add('k.account_id = ?', accountId)
          .add(`(k.created_at_ms, ${id}) > (?, ?)`, Math.floor(after?.createdAtMs ?? -1), after?.id ?? '')
        const order = `ORDER BY k.created_at_ms, ${id} LIMIT ${conditions.place(Math.max(0, limit))}`
        return allOf(keyOf, `${select} ${conditions.where()} ${order}`, conditions.parameters)
      },
      *insert(record) {
        if (record.spendingCap !== undefined) assertAmount(record.spendingCap.amount)
        yield [insert, keyValues(record)]
      },
      update(keyId, { accountId, limits, spendingCap, namesEndUsers }) {
        if (spendingCap != null) assertAmount(spendingCap.amount)
        return isChanged(
          `UPDATE ${table} SET account_id = coalesce($2, account_id), limits = CASE WHEN $3 THEN $4 ELSE limits END,
            cap_amount = CASE WHEN $5 THEN $6 ELSE cap_amount END, cap_period = CASE WHEN $5 THEN $7 ELSE cap_period END,
            names_end_users = coalesce($8, names_end_users)
          WHERE id = $1 RETURNING id`,
          [
            keyId,
            accountId ?? null,
            limits !== undefined,
            limits == null ? null : JSON.stringify(limits),
            spendingCap !== undefined,
            ...capValues(spendingCap),
            namesEndUsers === undefined ? null : Number(namesEndUsers),
          ],
        )
      },
      revoke: (keyId, nowMs) =>
        isChanged(`UPDATE ${table} SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE id = $1 RETURNING id`, [
          keyId,
          Math.floor(nowMs),
        ]),
      expire: (keyId, expiresAtMs) =>
        isChanged(
          `UPDATE ${table} SET expires_at_ms = CASE WHEN expires_at_ms <= $2 THEN expires_at_ms ELSE $2 END
          WHERE id = $1 RETURNING id`,
          [keyId, Math.floor(expiresAtMs)],
        ),
    },
  }
}

function keyOf(row: SqlRow): KeyRecord {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    hash: row['hash'] as string,
    label: row['label'] as string,
    scopes: JSON.parse(row['scopes'] as string) as KeyRecord['scopes'],
    limits: row['limits'] === null ? undefined : (JSON.parse(row['limits'] as string) as KeyRecord['limits']),
    spendingCap: capOf(row),
    ...(Number(row['names_end_users']) === 1 ? { namesEndUsers: true } : {}),
    ...(row['tags'] === null ? {} : { tags: (row['tags'] as string).split(',') }),
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: optionalTimeOf(row['expires_at_ms']),
    revokedAtMs: optionalTimeOf(row['revoked_at_ms']),
    replaces: (row['replaces'] as string | null) ?? undefined,
  }
}

function keyValues(record: KeyRecord): SqlParameter[] {
  const { limits, expiresAtMs, revokedAtMs } = record
  return [
    record.id,
    record.accountId,
    record.hash,
    record.label,
    JSON.stringify(record.scopes),
    limits === undefined ? null : JSON.stringify(limits),
    ...capValues(record.spendingCap),
    record.namesEndUsers === true ? 1 : 0,
    Math.floor(record.createdAtMs),
    expiresAtMs === undefined ? null : Math.floor(expiresAtMs),
    revokedAtMs === undefined ? null : Math.floor(revokedAtMs),
    record.replaces ?? null,
    record.tags === undefined ? null : record.tags.join(','),
  ]
}

/** Creates the store of settings that all processes share. */
export function sqlSettings(dialect: SqlDialect): SqlStore<SettingStore> {
  const table = dialect.table('settings')
  return {
    reads: ['read'],
    transactions: ['write'],
    work: {
      *read() {
        const rows = yield [`SELECT ${dialect.columns('name, value')} FROM ${table}`, []]
        return Object.fromEntries(rows.map(({ name, value }) => [name as string, Number(value)]))
      },
      *write(settings) {
        for (const setting of Object.entries(settings)) yield [upsert(table, 'name, value', 'name'), setting]
      },
    },
  }
}

const INTERACTION_COLUMNS = 'account_id, id, vendor, vendor_key, upstream_id, model, created_at_ms, expires_at_ms'

/** Creates the store of the owners of vendor conversations. */
export function sqlInteractions(dialect: SqlDialect): SqlStore<InteractionStore> {
  const table = dialect.table('interactions')
  const { find } = ownedRows(table, dialect.columns(INTERACTION_COLUMNS), interactionOf)
  const purge = purgeOwned(dialect, table, '$7')
  const save = upsert(table, INTERACTION_COLUMNS, 'account_id, id')
  return {
    reads: ['find'],
    work: {
      find,
      *save({ accountId, id, vendor, credentialId, upstreamId, model, createdAtMs, expiresAtMs }) {
        const names = [accountId, id, vendor, credentialId, upstreamId, model]
        yield* deleteBefore(dialect, [purge, save], [...names, Math.floor(createdAtMs), Math.floor(expiresAtMs)])
      },
    },
  }
}

function interactionOf(row: SqlRow): InteractionRecord {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    vendor: row['vendor'] as string,
    credentialId: row['vendor_key'] as string,
    upstreamId: row['upstream_id'] as string,
    model: row['model'] as string,
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
  }
}

/** Creates the store of operators' changes. */
export function sqlAudit(dialect: SqlDialect): SqlStore<AuditStore> {
  const table = dialect.table('audit')
  const id = dialect.inOrder('t.id')
  const old = `created_at_ms <= $5 ORDER BY created_at_ms LIMIT ${AUDIT_DELETE_BATCH}`
  const insert = `INSERT INTO ${table} (id, created_at_ms, subject, details) VALUES ($1, $2, $3, $4)`
  return {
    reads: ['list'],
    work: {
      list({ subject, fromMs, untilMs, after, limit }) {
        const conditions = new SqlConditions()
          .add('t.subject = ?', subject)
          .add('t.created_at_ms >= ?', fromMs && Math.floor(fromMs))
          .add('t.created_at_ms < ?', untilMs && Math.floor(untilMs))
          .add(`(t.created_at_ms, ${id}) < (?, ?)`, after && Math.floor(after.createdAtMs), after?.id)
        return allOf(
          auditEntryOf,
          `SELECT ${dialect.columns('id, created_at_ms, subject, details', 't')} FROM ${table} AS t ${conditions.where()}
          ORDER BY t.created_at_ms DESC, ${id} DESC LIMIT ${conditions.place(Math.max(0, limit))}`,
          conditions.parameters,
        )
      },
      *add(entry) {
        // Some databases store no NUL in a text; the escaped form in JSON stays.
        const subject = entry.subject?.replaceAll('\0', '\\u0000') ?? null
        const oldMs = Math.floor(entry.createdAtMs - AUDIT_RETENTION_MS)
        const values = [entry.id, Math.floor(entry.createdAtMs), subject, auditDetails(entry), oldMs]
        yield* deleteBefore(dialect, [deleteSome(dialect, table, 'id', old), insert], values)
      },
    },
  }
}

/** Counts an account's stored data of a kind, without expired data. */
export function* sqlStored(
  dialect: SqlDialect,
  accountId: string,
  kind: StoredKind,
  nowMs: number,
): SqlWork<StoredUsage> {
  const [table, byteLength] = dialect.stored[kind]
  const conditions = new SqlConditions().add('account_id = ?', accountId)
  if (kind === 'webhookSecrets') conditions.add('(expires_at_ms IS NULL OR expires_at_ms > ?)', Math.floor(nowMs))
  else if (kind !== 'tasks') conditions.add('expires_at_ms > ?', Math.floor(nowMs))
  const [row] = yield [
    `SELECT CAST(count(*) AS text) AS count, CAST(coalesce(sum(${byteLength}), 0) AS text) AS byte_length
    FROM ${table} ${conditions.where()}`,
    conditions.parameters,
  ]
  return { count: Number(row?.['count'] ?? 0), byteLength: Number(row?.['byte_length'] ?? 0) }
}

/** Tables of sums, in the order in which old rows are deleted. */
const SUM_TABLES = ['hours', 'model_days', 'days'] as const

/** Creates the part of a usage store that adds nothing to sums. */
export function sqlUsage(dialect: SqlDialect): SqlStore<Pick<UsageStore, 'records' | 'verify' | 'forget'>> {
  const table = dialect.table('usage_records')
  const columns = dialect.columns(['number', ...RECORD_COLUMNS].join(', '), 'u')
  const mismatches = `SELECT account_id, CAST(sum(records) AS text) AS records, CAST(sum(days) AS text) AS days,
      CAST(sum(journal) AS text) AS journal
    FROM (
      SELECT account_id, charged AS records, 0 AS days, 0 AS journal FROM ${table}
        WHERE ended_at_ms >= $1 AND ended_at_ms < $2
      UNION ALL SELECT account_id, 0, charged, 0 FROM ${dialect.table('usage_days')} WHERE day >= $3 AND day < $4
      UNION ALL SELECT a.id, 0, 0, (
        SELECT coalesce(-sum(e.amount), 0) FROM ${dialect.table('entries')} AS e
        WHERE e.account_id = a.id AND e.created_at_ms >= $1 AND e.created_at_ms < $2 AND e.kind = 'charge' AND e.hold_id IS NOT NULL
      ) FROM ${dialect.table('accounts')} AS a
    ) AS parts
    GROUP BY account_id HAVING sum(records) <> sum(days) OR sum(records) <> sum(journal) ORDER BY account_id`
  const deleteOld = (name: string, keys: string, condition: string): string => {
    const row = dialect.rowName(keys)
    const old = `SELECT ${row} FROM ${dialect.table(name)} WHERE ${condition} LIMIT $2`
    return `DELETE FROM ${dialect.table(name)} WHERE ${dialect.isInQuery(`(${row})`, old)} RETURNING 1`
  }
  // A record that no sum contains stays.
  const isCounted = dialect.isCounted(`(SELECT mark FROM ${dialect.table('usage_mark')})`)
  const deleteRecords = deleteOld('usage_records', 'number', `ended_at_ms < $1 AND ${isCounted} ORDER BY ended_at_ms`)
  return {
    reads: ['records', 'verify'],
    work: {
      *records({ accountId, fromMs, untilMs, after, limit }) {
        // The place also limits the time, because some planners cannot search for a pair of a column and the row's number.
        const endMs = after === undefined ? untilMs : Math.min(untilMs, after.endedAtMs + 1)
        const conditions = new SqlConditions()
          .add('u.account_id = ?', accountId)
          .add('u.ended_at_ms >= ?', Math.ceil(fromMs))
          .add('u.ended_at_ms < ?', Math.ceil(endMs))
          .add('(u.ended_at_ms, u.number) < (?, ?)', after?.endedAtMs, after?.number)
        const rows = yield [
          `SELECT ${columns} FROM ${table} AS u ${conditions.where()}
          ORDER BY u.ended_at_ms DESC, u.number DESC LIMIT ${conditions.place(limit + 1)}`,
          conditions.parameters,
        ]
        const last = rows.length > limit ? rows[limit - 1] : undefined
        return {
          records: rows.slice(0, limit).map(recordOf),
          end: last && { endedAtMs: Number(last['ended_at_ms']), number: BigInt(last['number'] as string | bigint) },
        }
      },
      *verify({ fromMs, untilMs }) {
        const days = [Math.floor(fromMs / DAY_MS), Math.ceil(untilMs / DAY_MS)]
        const rows = yield [mismatches, [Math.floor(fromMs), Math.floor(untilMs), ...days]]
        return rows.map((row) => ({
          accountId: row['account_id'] as string,
          records: BigInt(row['records'] as string),
          days: BigInt(row['days'] as string),
          journal: BigInt(row['journal'] as string),
        }))
      },
      *forget({ recordsUntilMs, hoursUntilMs, daysUntilMs, limit }) {
        let count = 0
        if (recordsUntilMs !== undefined)
          count += yield* changedRows(deleteRecords, [Math.floor(recordsUntilMs), limit])
        for (const table of SUM_TABLES) {
          const untilMs = table === 'days' ? daysUntilMs : hoursUntilMs
          if (untilMs === undefined) continue
          const { keys, length } = ROLL_UPS[table]
          const text = deleteOld(`usage_${table}`, keys.join(', '), `${keys[0]} < $1`)
          const deleted = yield* changedRows(text, [Math.floor(untilMs / length), limit])
          // Sums of whole days are deleted with their hours, which are more rows.
          if (table !== 'model_days') count += deleted
        }
        return count
      },
    },
  }
}
