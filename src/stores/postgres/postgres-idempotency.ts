import type { IdempotencyStore } from '../idempotency-store.ts'
import { answerParameters, claimResultOf, OUTCOME_COLUMNS } from './claim-outcome.ts'
import { timeParameter } from './column-values.ts'
import type { PostgresConnection } from './postgres-connection.ts'

/** Idempotency keys in PostgreSQL, the same ones that the ledger claims. */
export function postgresIdempotency({ run }: PostgresConnection, schema: string): IdempotencyStore {
  return {
    async claim({ accountId, key, fingerprint, expiresAtMs }, nowMs) {
      const [row] = await run(`SELECT ${OUTCOME_COLUMNS} FROM ${schema}.take_claim($1, $2, $3, $4, $5) AS o`, [
        accountId,
        key,
        fingerprint,
        timeParameter(expiresAtMs),
        timeParameter(nowMs),
      ])
      return claimResultOf(row!)
    },

    async complete({ accountId, key, fingerprint }, answer) {
      const values = [accountId, key, fingerprint, ...answerParameters(answer)]
      await run(`SELECT ${schema}.complete_claim($1, $2, $3, $4, $5, $6)`, values)
    },

    async release({ accountId, key, fingerprint }) {
      await run(`SELECT ${schema}.release_claim($1, $2, $3)`, [accountId, key, fingerprint])
    },
  }
}
