import { assertAmount } from '../ledger.ts'
import { TASK_COLUMNS, taskOf, taskValues } from '../sql-rows.ts'
import type { TaskChange, TaskRecord, TaskStore } from '../task-store.ts'
import type { NewDelivery } from '../webhook-store.ts'
import {
  answerParameters,
  detailsParameter,
  isStorable,
  journalTime,
  textParameter,
  timeParameter,
} from './column-values.ts'
import { CHARGE_COLUMNS, chargeOf } from './postgres-charge.ts'
import type { PostgresConnection, PostgresRow } from './postgres-connection.ts'
import { selectNewest } from './postgres-newest.ts'
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
