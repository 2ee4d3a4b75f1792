import { assertAmount } from '../ledger.ts'
import type { NewestFirstQuery } from '../resolution.ts'
import { deliveryOf, optionalTimeOf, TASK_COLUMNS, taskOf, taskValues } from '../sql-rows.ts'
import type { TaskChange, TaskRecord, TaskStore } from '../task-store.ts'
import {
  type DeliveryAttempt,
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookDelivery,
  type WebhookStore,
} from '../webhook-store.ts'
import { CHARGE_COLUMNS, chargeOf } from './postgres-charge.ts'
import {
  answerParameters,
  detailsParameter,
  isStorable,
  journalTime,
  type PostgresConnection,
  type PostgresRow,
  textParameter,
  timeParameter,
} from './postgres-connection.ts'
import { saveResponse } from './postgres-responses.ts'
import { orWithoutRecord } from './postgres-usage.ts'

/** Columns of a task `t` for {@link taskOf}. */
const SELECTED = `t.id, t.account_id, t.key_id, t.state, t.upstream_id, t.vendor_account, t.hold_id,
  t.created_at_ms::text, t.updated_at_ms::text, t.next_poll_at_ms::text, t.deadline_at_ms::text, t.details`

/** Tasks in PostgreSQL. Each method is one statement or transaction. The migrations create the functions that it calls. */
export function postgresTasks(connection: PostgresConnection, schema: string, clock: 'database' | 'caller'): TaskStore {
  const { run, transaction } = connection
  return {
    async insert(task) {
      await run(
        `INSERT INTO ${schema}.tasks (${TASK_COLUMNS})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING`,
        taskValues(task, timeParameter),
      )
    },

    async find(accountId, id) {
      const [row] = await run(
        `SELECT ${SELECTED} FROM ${schema}.tasks t WHERE t.account_id = $1 AND (t.id = $2 OR t.upstream_id = $2)
        ORDER BY t.id = $2 DESC, t.created_at_ms DESC LIMIT 1`,
        [accountId, textParameter(id)],
      )
      return row === undefined ? undefined : taskOf(row)
    },

    async list(accountId, { limit, after, before }) {
      if (!isStorable(after ?? '') || !isStorable(before ?? '')) return { tasks: [], hasMore: false }
      const isBackwards = after === undefined && before !== undefined
      const size = Math.max(0, limit)
      const values: unknown[] = [accountId, size + 1]
      // The time of the bound in a separate condition, so that its index leads directly to the page. No rows for an unknown id.
      const bound = (id: string | undefined, relation: '<' | '>'): string => {
        if (id === undefined) return ''
        const place = `$${values.push(id)}`
        return `AND (t.created_at_ms, t.id) ${relation}
          ((SELECT c.created_at_ms FROM ${schema}.tasks c WHERE c.account_id = $1 AND c.id = ${place}), ${place})`
      }
      const direction = isBackwards ? 'ASC' : 'DESC'
      const rows = await run(
        `SELECT ${SELECTED} FROM ${schema}.tasks t
        WHERE t.account_id = $1 ${bound(after, '<')} ${bound(before, '>')}
        ORDER BY t.created_at_ms ${direction}, t.id ${direction} LIMIT $2`,
        values,
      )
      const tasks = rows.slice(0, size).map(taskOf)
      return { tasks: isBackwards ? tasks.reverse() : tasks, hasMore: rows.length > size }
    },

    async listAll(query) {
      const rows = await selectNewest(connection, { table: `${schema}.tasks`, columns: SELECTED }, query)
      return rows.map(taskOf)
    },

    async change({ id, from, set, resolve, answered, keeps, delivery }, nowMs) {
      if (resolve?.kind === 'settle') assertAmount(resolve.amount)
      const settle = resolve?.kind === 'settle' ? resolve : undefined
      const values = [
        textParameter(id),
        from.join(','),
        JSON.stringify(setRequestOf(set)),
        journalTime(clock, nowMs),
        resolve?.kind ?? null,
        settle === undefined ? null : String(settle.amount),
        settle?.description ?? null,
        answered?.claim.accountId ?? null,
        answered?.claim.key ?? null,
        answered?.claim.fingerprint ?? null,
        ...answerParameters(answered?.answer),
        delivery === undefined ? null : JSON.stringify(deliveryRequestOf(delivery)),
        detailsParameter(settle?.details),
        settle?.thresholds !== undefined,
      ]
      const claimed =
        answered === undefined
          ? [null, null]
          : [answered.claim.claimedBy ?? null, timeParameter(answered.claim.expiresAtMs - nowMs)]
      const statement = `SELECT s.changed, s.is_charge, ${CHARGE_COLUMNS} FROM ${schema}.change_task(
        $1, string_to_array($2, ','), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) AS s`
      const { value, ...refused } = await orWithoutRecord(settle?.record, (sent) => {
        const all = [...values, sent, ...claimed]
        if (keeps === undefined) return run(statement, all)
        return transaction(async (session) => {
          const rows = (await session.query(statement, all)).rows as readonly PostgresRow[]
          if (rows[0]!['changed'] === true) await saveResponse(session, schema, keeps)
          return rows
        })
      })
      const row = value[0]!
      if (row['changed'] !== true) return undefined
      if (settle === undefined || row['is_charge'] !== true) return {}
      return { charge: { ...chargeOf(row, settle.amount, settle.thresholds), ...refused } }
    },

    async discard(id, claim) {
      const own = [claim?.accountId, claim?.key, claim?.fingerprint, claim?.claimedBy]
      const values = [textParameter(id), ...own.map((value) => value ?? null)]
      const [row] = await run(`SELECT ${schema}.discard_task($1, $2, $3, $4, $5) AS discarded`, values)
      return row!['discarded'] as boolean
    },

    async leaseDue({ credentialId, nowMs, leaseUntilMs, limit, budget, id, exceptAccounts = [] }) {
      if (limit <= 0 || !isStorable(id ?? '')) return []
      const rows = await run(
        `SELECT ${SELECTED} FROM ${schema}.take_due_tasks($1, $2, $3, $4, $5, $6, $7, $8)
          WITH ORDINALITY AS t ORDER BY t.ordinality`,
        [
          credentialId,
          timeParameter(nowMs),
          timeParameter(leaseUntilMs),
          limit,
          Math.min(budget.takes, Number.MAX_SAFE_INTEGER),
          timeParameter(budget.windowMs),
          id ?? null,
          exceptAccounts,
        ],
      )
      return rows.map(taskOf)
    },

    async credentialIds() {
      const rows = await run(
        `SELECT DISTINCT vendor_account FROM ${schema}.tasks WHERE state IN ('queued', 'in_progress')`,
        [],
      )
      return rows.map((row) => row['vendor_account'] as string)
    },

    async leaseExpired({ nowMs, leaseUntilMs, limit }) {
      const rows = await run(
        `SELECT ${SELECTED} FROM ${schema}.take_overdue_tasks($1, $2, $3) WITH ORDINALITY AS t ORDER BY t.ordinality`,
        [timeParameter(nowMs), timeParameter(leaseUntilMs), Math.max(0, limit)],
      )
      return rows.map(taskOf)
    },

    async purge({ changedUntilMs, limit }) {
      const values = [timeParameter(changedUntilMs), Math.max(0, limit)]
      const [row] = await run(`SELECT ${schema}.forget_tasks($1, $2) AS count`, values)
      return row!['count'] as number
    },
  }
}

/** Returns a task as input of the function `reserve_with_tasks`. */
export function taskRequestOf(task: TaskRecord): object {
  const { id, accountId, keyId, holdId, createdAtMs } = task
  return {
    id,
    account: accountId,
    key: keyId,
    hold: holdId,
    created: timeParameter(createdAtMs),
    ...setRequestOf(task),
  }
}

/** Returns new values for the function `change_task`. JSON text omits undefined members. */
function setRequestOf(set: TaskChange['set']): object {
  const time = (timeMs: number | undefined) => (timeMs === undefined ? undefined : timeParameter(timeMs))
  return {
    state: set.state,
    upstream: set.upstreamId,
    vendor_account: set.credentialId,
    updated: time(set.updatedAtMs),
    next_poll: time(set.nextPollAtMs),
    deadline: time(set.deadlineAtMs),
    // A string inside the JSON, which is stored byte for byte, while jsonb would reject U+0000.
    details: set.details === undefined ? undefined : JSON.stringify(set.details),
  }
}

/** Returns a message as input of the function `change_task`. */
function deliveryRequestOf(delivery: NewDelivery): object {
  return {
    id: delivery.id,
    account: delivery.accountId,
    task: delivery.taskId,
    url: delivery.url,
    body: delivery.body,
    created: timeParameter(delivery.createdAtMs),
    next_attempt: timeParameter(delivery.nextAttemptAtMs),
  }
}

/** Selects rows of all accounts, newest first, of a table named `t`. */
async function selectNewest(
  { run }: PostgresConnection,
  { table, columns }: { readonly table: string; readonly columns: string },
  { accountId, state, after, limit }: NewestFirstQuery<string>,
): Promise<readonly PostgresRow[]> {
  if (![accountId, state, after?.id].every((text) => isStorable(text ?? ''))) return []
  const values: unknown[] = [Math.max(0, limit)]
  const conditions: string[] = []
  if (accountId !== undefined) conditions.push(`t.account_id = $${values.push(accountId)}`)
  if (state !== undefined) conditions.push(`t.state = $${values.push(state)}`)
  if (after !== undefined) {
    const place = `$${values.push(timeParameter(after.createdAtMs))}, $${values.push(after.id)}`
    conditions.push(`(t.created_at_ms, t.id) < (${place})`)
  }
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return await run(
    `SELECT ${columns} FROM ${table} t ${where} ORDER BY t.created_at_ms DESC, t.id DESC LIMIT $1`,
    values,
  )
}

const COLUMNS = `d.id, d.account_id, d.task_id, d.url, d.body, d.state, array_to_json(d.attempts)::text AS attempts,
  d.created_at_ms::text, d.next_attempt_at_ms::text, d.resent_at_ms::text`
/** Messages and secrets in PostgreSQL. Tasks queue the messages in the transaction of their change. */
export function postgresWebhooks(connection: PostgresConnection, schema: string): WebhookStore {
  const { run, transaction } = connection
  return {
    async leaseDue({ nowMs, leaseUntilMs, limit }) {
      const rows = await run(
        `SELECT ${COLUMNS} FROM ${schema}.take_due_deliveries($1, $2, $3) WITH ORDINALITY AS d ORDER BY d.ordinality`,
        [timeParameter(nowMs), timeParameter(leaseUntilMs), Math.max(0, limit)],
      )
      return rows.map(withAttempts)
    },

    async record(id, { attempt, state, nextAttemptAtMs }) {
      // An attempt that outlived its lease may report after another one. It must not reopen the message, but a success still
      // counts. An attempt that began before its owner resent the message does not delay the resend.
      const counts = `($3 = 'delivered' OR (state = 'pending' AND coalesce(resent_at_ms, 0) <= $5))`
      await run(
        `UPDATE ${schema}.deliveries SET
          attempts = (attempts || $2::text)[greatest(1, cardinality(attempts) + 2 - ${MAX_ATTEMPTS_KEPT}):],
          state = CASE WHEN ${counts} THEN $3::text ELSE state END,
          next_attempt_at_ms = CASE WHEN ${counts} THEN $4 ELSE next_attempt_at_ms END,
          lease_until_ms = 0
        WHERE id = $1`,
        [
          textParameter(id),
          JSON.stringify(attempt),
          state,
          timeParameter(nextAttemptAtMs),
          timeParameter(attempt.atMs),
        ],
      )
    },

    async release(ids) {
      await run(`UPDATE ${schema}.deliveries SET lease_until_ms = 0 WHERE id = ANY ($1)`, [ids.map(textParameter)])
    },

    async list(accountId, taskId) {
      const rows = await run(
        `SELECT ${COLUMNS} FROM ${schema}.deliveries d WHERE d.account_id = $1 AND d.task_id = $2
        ORDER BY d.created_at_ms, d.id`,
        [accountId, textParameter(taskId)],
      )
      return rows.map(withAttempts)
    },

    async listAll(query) {
      const columns = COLUMNS.replaceAll('d.', 't.')
      const rows = await selectNewest(connection, { table: `${schema}.deliveries`, columns }, query)
      return rows.map(withAttempts)
    },

    async resend(accountId, id, nowMs) {
      const rows = await run(
        `UPDATE ${schema}.deliveries SET state = 'pending', next_attempt_at_ms = $3, resent_at_ms = $3
        WHERE account_id = $1 AND id = $2 RETURNING id`,
        [accountId, textParameter(id), timeParameter(nowMs)],
      )
      return rows.length > 0
    },

    async secrets(accountId, nowMs) {
      const rows = await run(
        `SELECT secret, expires_at_ms::text FROM ${schema}.webhook_secrets s
        WHERE account_id = $1 AND (s.expires_at_ms IS NULL OR s.expires_at_ms > $2) ORDER BY number DESC`,
        [accountId, timeParameter(nowMs)],
      )
      return rows.map((row) => ({
        secret: row['secret'] as string,
        expiresAtMs: optionalTimeOf(row['expires_at_ms']),
      }))
    },

    ensureSecret(accountId, secret) {
      const hasNoEnd = `FROM ${schema}.webhook_secrets s WHERE s.account_id = $1 AND s.expires_at_ms IS NULL`
      return transaction(async (session) => {
        // Lock of `replace_webhook_secret`. Later statements see the changes of its previous owner.
        await session.query(
          `SELECT pg_advisory_xact_lock(
            hashtextextended(format('%s:webhook_secrets:%s', (parse_ident($1))[1], $2::text), 0))`,
          [schema, accountId],
        )
        await session.query(
          `INSERT INTO ${schema}.webhook_secrets (account_id, secret) SELECT $1, $2 WHERE NOT EXISTS (SELECT ${hasNoEnd})`,
          [accountId, secret],
        )
        const { rows } = await session.query(`SELECT s.secret ${hasNoEnd} ORDER BY s.number DESC LIMIT 1`, [accountId])
        return (rows[0] as { readonly secret: string }).secret
      })
    },

    async replaceSecret(accountId, secret, overlapUntilMs, nowMs) {
      await run(`DELETE FROM ${schema}.webhook_secrets WHERE account_id = $1 AND expires_at_ms <= $2`, [
        accountId,
        timeParameter(nowMs),
      ])
      const values = [accountId, secret, timeParameter(overlapUntilMs)]
      await run(`SELECT ${schema}.replace_webhook_secret($1, $2, $3)`, values)
    },
  }
}

function withAttempts(row: PostgresRow): WebhookDelivery {
  const attempts = JSON.parse(row['attempts'] as string) as string[]
  return deliveryOf(
    row,
    attempts.map((attempt) => JSON.parse(attempt) as DeliveryAttempt),
  )
}
