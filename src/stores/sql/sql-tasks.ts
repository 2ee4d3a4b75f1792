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
import { places, SqlConditions, type SqlDialect, type SqlStore, type SqlWork } from './statements.ts'

const TASK_COLUMNS =
  'id, account_id, key_id, state, upstream_id, vendor_account, hold_id, created_at_ms, updated_at_ms, next_poll_at_ms, deadline_at_ms, details'

/** Returns the columns of tasks `t` to select for {@link taskOf}. */
export function taskColumns(dialect: SqlDialect): string {
  return dialect.columns(TASK_COLUMNS, 't')
}

/** Methods of a task store without money and leases, which each driver has in its own way. */
type PlainTasks = Pick<TaskStore, 'find' | 'list' | 'listAll' | 'credentialIds' | 'insert'>

/** Creates the part of a task store that needs no hold and no lease. */
export function sqlTasks(dialect: SqlDialect): SqlStore<PlainTasks, Exclude<keyof PlainTasks, 'insert'>> {
  const table = dialect.table('tasks')
  const select = `SELECT ${taskColumns(dialect)} FROM ${table} AS t`
  return {
    reads: {
      *find(accountId, id) {
        const [row] = yield [`${select} WHERE t.account_id = $1 AND t.id = $2`, [accountId, id]]
        if (row !== undefined) return taskOf(row)
        const [found] = yield [
          `${select} WHERE t.account_id = $1 AND t.upstream_id = $2 ORDER BY t.created_at_ms DESC LIMIT 1`,
          [accountId, id],
        ]
        return found && taskOf(found)
      },
      *list(accountId, { limit, after, before }) {
        const isBackwards = after === undefined && before !== undefined
        const direction = isBackwards ? 'ASC' : 'DESC'
        const size = Math.max(0, limit)
        const conditions = new SqlConditions().add('t.account_id = ?', accountId)
        // The time of the bound in a separate query, so that its index leads directly to the page. No rows for an unknown id.
        const bound = (relation: '<' | '>'): string => `(t.created_at_ms, t.id) ${relation}
          ((SELECT c.created_at_ms FROM ${table} AS c WHERE c.account_id = $1 AND c.id = ?), ?)`
        conditions.add(bound('<'), after, after).add(bound('>'), before, before)
        const rows = yield [
          `${select} ${conditions.where()}
          ORDER BY t.created_at_ms ${direction}, t.id ${direction} LIMIT ${conditions.place(size + 1)}`,
          conditions.parameters,
        ]
        const tasks = rows.slice(0, size).map(taskOf)
        return { tasks: isBackwards ? tasks.reverse() : tasks, hasMore: rows.length > size }
      },
      *listAll(query) {
        return (yield* newestFirst(dialect, 'tasks', taskColumns(dialect), query)).map(taskOf)
      },
      *credentialIds() {
        const rows = yield [
          `SELECT DISTINCT vendor_account FROM ${table} ${dialect.index('tasks_due')} WHERE state IN ('queued', 'in_progress')`,
          [],
        ]
        return rows.map((row) => row['vendor_account'] as string)
      },
    },
    writes: {
      *insert(task) {
        yield [
          `INSERT INTO ${table} (${TASK_COLUMNS}) VALUES (${places(12)}) ON CONFLICT (id) DO NOTHING`,
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
    },
    transactions: {},
  }
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

/** Selects rows `t` of all accounts, newest first. */
function* newestFirst(
  dialect: SqlDialect,
  name: 'tasks' | 'deliveries',
  columns: string,
  { accountId, state, after, limit }: NewestFirstQuery<string>,
): SqlWork<readonly SqlRow[]> {
  const conditions = new SqlConditions()
    .add('t.account_id = ?', accountId)
    .add('t.state = ?', state)
    .add('(t.created_at_ms, t.id) < (?, ?)', after && Math.floor(after.createdAtMs), after?.id)
  // For a state and an account a planner may choose the index of the states, where the account may have few rows.
  const index = accountId === undefined ? '' : dialect.index(`${name}_by_account`)
  return yield [
    `SELECT ${columns} FROM ${dialect.table(name)} AS t ${index} ${conditions.where()}
    ORDER BY t.created_at_ms DESC, t.id DESC LIMIT ${conditions.place(Math.max(0, limit))}`,
    conditions.parameters,
  ]
}

/** Webhooks as work, without the lease, and the function with which changes of tasks queue messages. */
export interface SqlWebhooks
  extends SqlStore<Omit<WebhookStore, 'leaseDue'>, 'list' | 'listAll' | 'secrets', 'ensureSecret' | 'replaceSecret'> {
  /** Queues a message; an existing one with the same id stays unchanged. */
  add(delivery: NewDelivery): SqlWork<void>
}

/** Returns the columns of messages `t` to select for {@link deliveryOf}. */
export function deliveryColumns({ columns, attempts }: SqlDialect): string {
  const plain = 'id, account_id, task_id, url, body, state, created_at_ms, next_attempt_at_ms, resent_at_ms'
  return `${columns(plain, 't')}, ${attempts.read} AS attempts`
}

/** Creates the part of a webhook store that needs no lease. */
export function sqlWebhooks(dialect: SqlDialect): SqlWebhooks {
  const table = dialect.table('deliveries')
  const secrets = dialect.table('webhook_secrets')
  const columns = deliveryColumns(dialect)
  const lock = (accountId: string) => dialect.lock(`webhook_secrets:${accountId}`)
  // An attempt that outlived its lease may report after another one. It must not reopen the message, but a success still
  // counts. An attempt that began before its owner resent the message does not delay the resend.
  const counts = `(CAST($3 AS text) = 'delivered' OR (state = 'pending' AND coalesce(resent_at_ms, 0) <= $5))`
  return {
    reads: {
      *list(accountId, taskId) {
        const rows = yield [
          `SELECT ${columns} FROM ${table} AS t WHERE t.account_id = $1 AND t.task_id = $2 ORDER BY t.created_at_ms, t.id`,
          [accountId, taskId],
        ]
        return rows.map(deliveryOf)
      },
      *listAll(query) {
        return (yield* newestFirst(dialect, 'deliveries', columns, query)).map(deliveryOf)
      },
      *secrets(accountId, nowMs) {
        const rows = yield [
          `SELECT ${dialect.columns('secret, expires_at_ms', 's')} FROM ${secrets} AS s
          WHERE s.account_id = $1 AND (s.expires_at_ms IS NULL OR s.expires_at_ms > $2) ORDER BY s.number DESC`,
          [accountId, Math.floor(nowMs)],
        ]
        return rows.map((row) => ({
          secret: row['secret'] as string,
          expiresAtMs: optionalTimeOf(row['expires_at_ms']),
        }))
      },
    },
    writes: {
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
      *resend(accountId, id, nowMs) {
        const rows = yield [
          `UPDATE ${table} SET state = 'pending', next_attempt_at_ms = $3, resent_at_ms = $3
          WHERE account_id = $1 AND id = $2 RETURNING id`,
          [accountId, id, Math.floor(nowMs)],
        ]
        return rows.length > 0
      },
    },
    transactions: {
      *ensureSecret(accountId, secret) {
        yield* lock(accountId)
        const [current] = yield [
          `SELECT s.secret FROM ${secrets} AS s WHERE s.account_id = $1 AND s.expires_at_ms IS NULL
          ORDER BY s.number DESC LIMIT 1`,
          [accountId],
        ]
        if (current !== undefined) return current['secret'] as string
        yield [`INSERT INTO ${secrets} (account_id, secret) VALUES ($1, $2)`, [accountId, secret]]
        return secret
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
        yield [`INSERT INTO ${secrets} (account_id, secret) VALUES ($1, $2)`, [accountId, secret]]
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
export function deliveryOf(row: SqlRow): WebhookDelivery {
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
