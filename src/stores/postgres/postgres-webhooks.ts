import { deliveryOf, optionalTimeOf } from '../sql-rows.ts'
import { type DeliveryAttempt, MAX_ATTEMPTS_KEPT, type WebhookDelivery, type WebhookStore } from '../webhook-store.ts'
import { textParameter, timeParameter } from './column-values.ts'
import type { PostgresConnection, PostgresRow } from './postgres-connection.ts'
import { selectNewest } from './postgres-newest.ts'

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
