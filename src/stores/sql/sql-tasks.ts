import type { NewestFirstQuery } from '../resolution.ts'
import { optionalTimeOf, type SqlRow } from '../sql-rows.ts'
import type { TaskDetails, TaskRecord, TaskState, TaskStore } from '../task-store.ts'
import {
  type DeliveryAttempt,
  type DeliveryState,
  MAX_ATTEMPTS_KEPT,
  type NewDelivery,
  type WebhookDelivery,
  type WebhookStore,
} from '../webhook-store.ts'
import {
  allOf,
  firstOf,
  isChanged,
  places,
  SqlConditions,
  type SqlDialect,
  type SqlParameter,
  type SqlStore,
  type SqlWork,
} from './statements.ts'

const TASK_COLUMNS =
  'id, account_id, key_id, state, upstream_id, vendor_account, hold_id, created_at_ms, updated_at_ms, next_poll_at_ms, deadline_at_ms, details'

/** Returns the columns of tasks to select for {@link taskOf}. */
export function taskColumns(dialect: SqlDialect): string {
  return dialect.columns(TASK_COLUMNS)
}

/** Creates the part of a task store that needs no hold, without the lease that counts against a budget. */
export function sqlTasks(dialect: SqlDialect): SqlStore<Omit<TaskStore, 'change' | 'discard' | 'leaseDue'>> {
  const table = dialect.table('tasks')
  const deliveries = dialect.table('deliveries')
  const columns = taskColumns(dialect)
  const select = `SELECT ${columns} FROM ${table} AS t`
  const byId = `${select} WHERE t.account_id = $1 AND t.id = $2`
  const insert = `INSERT INTO ${table} (${TASK_COLUMNS}) VALUES (${places(12)}) ON CONFLICT (id) DO NOTHING`
  // Indexes by name, because a planner may choose those of the states, and read every open task, or every task that ended.
  const overdue = `SELECT id FROM ${table} AS o ${dialect.index('tasks_by_deadline')}
    WHERE o.state IN ('submitting', 'unknown', 'queued', 'in_progress') AND o.deadline_at_ms <= $1 AND o.lease_until_ms <= $1
    ORDER BY o.deadline_at_ms LIMIT $2`
  // Skips tasks with waiting messages, so that they do not block the rest.
  const ended = `SELECT id FROM ${table} AS t ${dialect.index('ended_tasks')}
    WHERE t.state IN ('completed', 'failed', 'cancelled') AND t.updated_at_ms <= $1 AND NOT EXISTS (
      SELECT 1 FROM ${deliveries} AS d WHERE d.task_id = t.id AND d.state = 'pending'
    ) ORDER BY t.updated_at_ms LIMIT $2`
  return {
    reads: ['find', 'list', 'listAll', 'credentialIds'],
    transactions: ['purge'],
    idle: {
      leaseExpired: ({ nowMs }) => unlessAny([], overdue, [Math.floor(nowMs), 1]),
      purge: ({ changedUntilMs }) => unlessAny(0, ended, [Math.floor(changedUntilMs), 1]),
    },
    work: {
      *find(accountId, id) {
        const task = yield* firstOf(taskOf, byId, [accountId, id])
        if (task !== undefined) return task
        return yield* firstOf(
          taskOf,
          `${select} ${dialect.index('tasks_by_upstream')} WHERE t.account_id = $1 AND t.upstream_id = $2
          ORDER BY t.created_at_ms DESC LIMIT 1`,
          [accountId, id],
        )
      },
      *list(accountId, { limit, after, before }) {
        const isBackwards = after === undefined && before !== undefined
        const direction = isBackwards ? 'ASC' : 'DESC'
        const size = Math.max(0, limit)
        // The time of the bound in a separate query, so that its index leads directly to the page. No rows for an unknown id.
        const bound = (relation: '<' | '>'): string => `(t.created_at_ms, t.id) ${relation}
          ((SELECT c.created_at_ms FROM ${table} AS c WHERE c.account_id = $1 AND c.id = ?), ?)`
        const conditions = new SqlConditions()
          .add('t.account_id = ?', accountId)
          .add(bound('<'), after, after)
          .add(bound('>'), before, before)
        const found = yield* allOf(
          taskOf,
          `${select} ${conditions.where()}
          ORDER BY t.created_at_ms ${direction}, t.id ${direction} LIMIT ${conditions.place(size + 1)}`,
          conditions.parameters,
        )
        const tasks = found.slice(0, size)
        return { tasks: isBackwards ? tasks.reverse() : tasks, hasMore: found.length > size }
      },
      listAll: (query) => newestFirst(dialect, 'tasks', { columns, of: taskOf }, query),
      credentialIds: () =>
        allOf(
          (row) => row['vendor_account'] as string,
          `SELECT DISTINCT vendor_account FROM ${table} ${dialect.index('tasks_due')} WHERE state IN ('queued', 'in_progress')`,
          [],
        ),
      *insert(task) {
        yield [
          insert,
          [
            task.id,
            task.accountId,
            task.keyId,
            task.state,
            task.upstreamId ?? null,
            task.credentialId,
            task.holdId ?? null,
            Math.floor(task.createdAtMs),
            Math.floor(task.updatedAtMs),
            Math.floor(task.nextPollAtMs),
            Math.floor(task.deadlineAtMs),
            JSON.stringify(task.details),
          ],
        ]
      },
      *leaseExpired({ nowMs, leaseUntilMs, limit }) {
        const query = `${overdue} ${dialect.skipLocked}`
        const tasks = yield* lease(dialect, 'tasks', query, { nowMs, leaseUntilMs, limit }, { columns, of: taskOf })
        return tasks.sort((one, other) => one.deadlineAtMs - other.deadlineAtMs)
      },
      *purge({ changedUntilMs, limit }) {
        const found = yield* allOf(({ id }) => id as string, `${ended} ${dialect.skipLocked}`, [
          Math.floor(changedUntilMs),
          Math.max(0, limit),
        ])
        // The messages are locked with their tasks: a message that is resent at the same moment is deleted with its task, or keeps it.
        const messages = yield [
          `SELECT d.task_id, d.state FROM ${deliveries} AS d WHERE ${dialect.isIn('d.task_id', '$1')}
          ORDER BY d.id ${dialect.forUpdate}`,
          [found],
        ]
        const waiting = new Set(messages.filter(({ state }) => state === 'pending').map((row) => row['task_id']))
        const ids = found.filter((id) => !waiting.has(id))
        yield [`DELETE FROM ${deliveries} WHERE ${dialect.isIn('task_id', '$1')}`, [ids]]
        yield [`DELETE FROM ${table} WHERE ${dialect.isIn('id', '$1')}`, [ids]]
        return ids.length
      },
    },
  }
}

/** Returns `none` if a query finds no row, and otherwise `undefined`. */
function* unlessAny<Value>(none: Value, text: string, parameters: readonly SqlParameter[]): SqlWork<Value | undefined> {
  return (yield [text, parameters]).length === 0 ? none : undefined
}

/** Columns of rows, and their mapper. */
interface Selected<Value> {
  readonly columns: string
  readonly of: (row: SqlRow) => Value
}

/** Leases the rows of a query with the parameters `nowMs` and `limit`, in any order. */
function lease<Value>(
  dialect: SqlDialect,
  table: 'tasks' | 'deliveries',
  query: string,
  { nowMs, leaseUntilMs, limit }: { readonly nowMs: number; readonly leaseUntilMs: number; readonly limit: number },
  { columns, of }: Selected<Value>,
): SqlWork<Value[]> {
  return allOf(
    of,
    `UPDATE ${dialect.table(table)} AS t SET lease_until_ms = $3 WHERE ${dialect.isInQuery('t.id', query)} RETURNING ${columns}`,
    [Math.floor(nowMs), Math.max(0, limit), Math.floor(leaseUntilMs)],
  )
}

/** Returns the task in a row. */
export function taskOf(row: SqlRow): TaskRecord {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    keyId: row['key_id'] as string,
    state: row['state'] as TaskState,
    upstreamId: (row['upstream_id'] as string | null) ?? undefined,
    credentialId: row['vendor_account'] as string,
    holdId: (row['hold_id'] as string | null) ?? undefined,
    createdAtMs: Number(row['created_at_ms']),
    updatedAtMs: Number(row['updated_at_ms']),
    nextPollAtMs: Number(row['next_poll_at_ms']),
    deadlineAtMs: Number(row['deadline_at_ms']),
    details: JSON.parse(row['details'] as string) as TaskDetails,
  }
}

/** Selects rows of all accounts, newest first. */
function newestFirst<Value>(
  dialect: SqlDialect,
  name: 'tasks' | 'deliveries',
  { columns, of }: Selected<Value>,
  { accountId, state, after, limit }: NewestFirstQuery<string>,
): SqlWork<Value[]> {
  const conditions = new SqlConditions()
    .add('t.account_id = ?', accountId)
    .add('t.state = ?', state)
    .add('(t.created_at_ms, t.id) < (?, ?)', after && Math.floor(after.createdAtMs), after?.id)
  // For a state and an account a planner may choose the index of the states, where the account may have few rows.
  const index = accountId === undefined ? '' : dialect.index(`${name}_by_account`)
  return allOf(
    of,
    `SELECT ${columns} FROM ${dialect.table(name)} AS t ${index} ${conditions.where()}
    ORDER BY t.created_at_ms DESC, t.id DESC LIMIT ${conditions.place(Math.max(0, limit))}`,
    conditions.parameters,
  )
}

/** Webhooks as work, and the function with which changes of tasks queue messages. */
export interface SqlWebhooks extends SqlStore<WebhookStore> {
  /** Queues a message; an existing one with the same id stays unchanged. */
  add(delivery: NewDelivery): SqlWork<void>
}

/** Creates the store of messages and of the secrets that sign them. */
export function sqlWebhooks(dialect: SqlDialect): SqlWebhooks {
  const table = dialect.table('deliveries')
  const secrets = dialect.table('webhook_secrets')
  const plain = 'id, account_id, task_id, url, body, state, created_at_ms, next_attempt_at_ms, resent_at_ms'
  const columns = `${dialect.columns(plain)}, ${dialect.attempts.read} AS attempts`
  const addSecret = `INSERT INTO ${secrets} (account_id, secret) VALUES ($1, $2)`
  const lock = (accountId: string) => dialect.lock(`webhook_secrets:${accountId}`)
  // An attempt that outlived its lease may report after another one. It must not reopen the message, but a success still
  // counts. An attempt that began before its owner resent the message does not delay the resend.
  const counts = `(CAST($3 AS text) = 'delivered' OR (state = 'pending' AND coalesce(resent_at_ms, 0) <= $5))`
  // Index by name, because a planner may choose that of the states, and read every waiting message.
  const due = `SELECT id FROM ${table} AS o ${dialect.index('deliveries_due')}
    WHERE o.state = 'pending' AND o.next_attempt_at_ms <= $1 AND o.lease_until_ms <= $1
    ORDER BY o.next_attempt_at_ms LIMIT $2`
  return {
    reads: ['list', 'listAll', 'secrets'],
    transactions: ['ensureSecret', 'replaceSecret'],
    idle: { leaseDue: ({ nowMs }) => unlessAny([], due, [Math.floor(nowMs), 1]) },
    work: {
      list: (accountId, taskId) =>
        allOf(
          deliveryOf,
          `SELECT ${columns} FROM ${table} AS t WHERE t.account_id = $1 AND t.task_id = $2 ORDER BY t.created_at_ms, t.id`,
          [accountId, taskId],
        ),
      listAll: (query) => newestFirst(dialect, 'deliveries', { columns, of: deliveryOf }, query),
      secrets: (accountId, nowMs) =>
        allOf(
          (row) => ({ secret: row['secret'] as string, expiresAtMs: optionalTimeOf(row['expires_at_ms']) }),
          `SELECT ${dialect.columns('secret, expires_at_ms', 's')} FROM ${secrets} AS s
          WHERE s.account_id = $1 AND (s.expires_at_ms IS NULL OR s.expires_at_ms > $2) ORDER BY s.number DESC`,
          [accountId, Math.floor(nowMs)],
        ),
      *leaseDue(query) {
        const text = `${due} ${dialect.skipLocked}`
        const messages = yield* lease(dialect, 'deliveries', text, query, { columns, of: deliveryOf })
        return messages.sort((one, other) => one.nextAttemptAtMs - other.nextAttemptAtMs)
      },
      *record(id, { attempt, state, nextAttemptAtMs }) {
        yield [
          `UPDATE ${table} SET attempts = ${dialect.attempts.add('$2', MAX_ATTEMPTS_KEPT)},
            state = CASE WHEN ${counts} THEN CAST($3 AS text) ELSE state END,
            next_attempt_at_ms = CASE WHEN ${counts} THEN $4 ELSE next_attempt_at_ms END,
            lease_until_ms = 0
          WHERE id = $1`,
          [id, JSON.stringify(attempt), state, Math.floor(nextAttemptAtMs), Math.floor(attempt.atMs)],
        ]
      },
      *release(ids) {
        yield [`UPDATE ${table} SET lease_until_ms = 0 WHERE ${dialect.isIn('id', '$1')}`, [ids]]
      },
      resend: (accountId, id, nowMs) =>
        isChanged(
          `UPDATE ${table} SET state = 'pending', next_attempt_at_ms = $3, resent_at_ms = $3
          WHERE account_id = $1 AND id = $2 RETURNING id`,
          [accountId, id, Math.floor(nowMs)],
        ),
      *ensureSecret(accountId, secret) {
        yield* lock(accountId)
        const current = yield* firstOf(
          (row) => row['secret'] as string,
          `SELECT s.secret FROM ${secrets} AS s WHERE s.account_id = $1 AND s.expires_at_ms IS NULL
          ORDER BY s.number DESC LIMIT 1`,
          [accountId],
        )
        if (current === undefined) yield [addSecret, [accountId, secret]]
        return current ?? secret
      },
      *replaceSecret(accountId, secret, overlapUntilMs, nowMs) {
        yield* lock(accountId)
        yield [
          `DELETE FROM ${secrets} WHERE account_id = $1 AND (secret = $2 OR expires_at_ms <= $3)`,
          [accountId, secret, Math.floor(nowMs)],
        ]
        // Never extended: a secret that has expired, or soon does, stays so.
        yield [
          `UPDATE ${secrets} SET expires_at_ms = CASE WHEN expires_at_ms <= $2 THEN expires_at_ms ELSE $2 END
          WHERE account_id = $1`,
          [accountId, Math.floor(overlapUntilMs)],
        ]
        yield [addSecret, [accountId, secret]]
      },
    },
    *add({ id, accountId, taskId, url, body, createdAtMs, nextAttemptAtMs }) {
      yield [
        `INSERT INTO ${table} (id, account_id, task_id, url, body, created_at_ms, next_attempt_at_ms)
        VALUES (${places(7)}) ON CONFLICT (id) DO NOTHING`,
        [id, accountId, taskId, url, body, Math.floor(createdAtMs), Math.floor(nextAttemptAtMs)],
      ]
    },
  }
}

/** Returns the message in a row. Each attempt is an object, or its JSON text. */
function deliveryOf(row: SqlRow): WebhookDelivery {
  const resentAtMs = Number(row['resent_at_ms'])
  const attempts = JSON.parse(row['attempts'] as string) as readonly (string | DeliveryAttempt)[]
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    taskId: row['task_id'] as string,
    url: row['url'] as string,
    body: row['body'] as string,
    createdAtMs: Number(row['created_at_ms']),
    nextAttemptAtMs: Number(row['next_attempt_at_ms']),
    state: row['state'] as DeliveryState,
    attempts: attempts.map((one) => (typeof one === 'string' ? (JSON.parse(one) as DeliveryAttempt) : one)),
    resentAtMs: resentAtMs === 0 ? undefined : resentAtMs,
  }
}
