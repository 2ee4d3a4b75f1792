import type { SqliteDatabase, SqliteStatement, SqlValue } from '../../../../src/stores/sqlite/sqlite-database.ts'

/** A database that counts what its prepared statements are asked, and can be made to fail. */
export interface CountedDatabase extends SqliteDatabase {
  /** Calls since the map was last cleared, by the first word of the statement. */
  readonly calls: Map<string, number>
  /** The next call of a statement that begins with the word throws an error that is not the engine's. */
  failNext(word: string): void
}

/** Puts a count around a database. */
export function countedDatabase(database: SqliteDatabase): CountedDatabase {
  const calls = new Map<string, number>()
  let failing: string | undefined

  function count(word: string): void {
    calls.set(word, (calls.get(word) ?? 0) + 1)
    if (word !== failing) return
    failing = undefined
    throw new Error(`${word} was made to fail`)
  }

  function counted(statement: SqliteStatement, word: string): SqliteStatement {
    const asked = <Value>(call: (...parameters: SqlValue[]) => Value) => {
      return (...parameters: SqlValue[]): Value => {
        count(word)
        return call.apply(statement, parameters)
      }
    }
    const { setReadBigInts, safeIntegers } = statement
    return {
      run: asked(statement.run),
      get: asked(statement.get),
      all: asked(statement.all),
      ...(setReadBigInts && { setReadBigInts: (enabled: boolean) => setReadBigInts.call(statement, enabled) }),
      ...(safeIntegers && { safeIntegers: (enabled?: boolean) => safeIntegers.call(statement, enabled) }),
    }
  }

  return {
    calls,
    failNext: (word) => {
      failing = word
    },
    exec: (sql) => database.exec(sql),
    prepare: (sql) => counted(database.prepare(sql), /\w+/.exec(sql)?.[0] ?? ''),
    close: () => database.close(),
  }
}
