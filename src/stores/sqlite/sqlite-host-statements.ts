import { systemClock, type Timer } from '../../core/clock.ts'
import type { HostTransaction } from '../ledger.ts'
import type { SqliteDatabase, SqlValue } from './sqlite-database.ts'

export type HostStatements = (transaction: HostTransaction) => Promise<void>

/** Returns a function that runs statements of the host on the connection of the store, and rejects after `limitMs`. */
export function limitedStatements(database: SqliteDatabase, run: HostStatements, limitMs: number): () => Promise<void> {
  return async () => {
    let isOver = false
    const query: HostTransaction['query'] = async (text, values = []) => {
      if (isOver) throw new Error('the transaction has ended')
      const statement = database.prepare(text)
      // better-sqlite3 reads rows only from statements that return some.
      if (statement.reader !== false) return { rows: statement.all(...(values as SqlValue[])) }
      statement.run(...(values as SqlValue[]))
      return { rows: [] }
    }
    let timer: Timer | undefined
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`the host's statements took longer than ${limitMs} ms`)
      timer = systemClock.schedule(limitMs, () => reject(error))
    })
    try {
      await Promise.race([run({ query }), late])
    } finally {
      isOver = true
      timer?.cancel()
    }
  }
}
