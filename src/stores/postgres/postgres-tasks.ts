import { assertAmount } from '../ledger.ts'
import type { StoredResponse } from '../response-store.ts'
import { taskColumns, taskOf } from '../sql/sql-tasks.ts'
import type { SqlWork } from '../sql/statements.ts'
import type { TaskChange, TaskRecord, TaskStore } from '../task-store.ts'
import type { NewDelivery } from '../webhook-store.ts'
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
import { postgresDialect, workIn } from './postgres-statements.ts'
import { retryWithoutRecord } from './postgres-usage.ts'

interface PostgresTasksParts {
  readonly schema: string
  readonly clock: 'database' | 'caller'
  readonly saveResponse: (turn: StoredResponse) => SqlWork<void>
}

/** Changes and leases of tasks. Each method is one statement or transaction. The migrations create the functions that it calls. */
export function postgresTasks(
  connection: PostgresConnection,
  { schema, clock, saveResponse }: PostgresTasksParts,
): Pick<TaskStore, 'change' | 'discard' | 'leaseDue'> {
  const { run, transaction } = connection
  const columns = taskColumns(postgresDialect(schema))
  return {
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
      const { value, ...refused } = await retryWithoutRecord(settle?.record, (sent) => {
        const all = [...values, sent, ...claimed]
        if (keeps === undefined) return run(statement, all)
        return transaction(async (session) => {
          const rows = (await session.query(statement, all)).rows as readonly PostgresRow[]
          if (rows[0]!['changed'] === true) await workIn(session, saveResponse(keeps))
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
        `SELECT ${columns} FROM ${schema}.take_due_tasks($1, $2, $3, $4, $5, $6, $7, $8)
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
