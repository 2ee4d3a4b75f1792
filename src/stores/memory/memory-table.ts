import type { StoredUsage } from '../sql-rows.ts'
import { AccountShares, MapCursor } from './account-shares.ts'

/** Names, limits, expiry and indexes of rows. */
export interface MemoryTableOptions<Row, Index extends string> {
  /** Returns the name of a row, which is unique in the table. */
  readonly nameOf: (row: Row) => string
  /** Maximum number of rows; the oldest of accounts with more than their share are dropped first. Default unlimited. */
  readonly maxCount?: number | undefined
  /** Maximum size of all rows, as with `maxCount`. Default unlimited. */
  readonly maxBytes?: number | undefined
  /** Returns the size of a row in bytes. Default 0. */
  readonly byteLengthOf?: (row: Row) => number
  /** Returns the expiry of a row in Unix milliseconds. By default, rows do not expire. */
  readonly expiresAtMsOf?: (row: Row) => number
  /** Whether the limits count a row. By default, they count every row. */
  readonly isLimited?: (row: Row) => boolean
  /** Returns the keys by which an index finds a row, by name of the index. */
  readonly indexes?: Readonly<Record<Index, (row: Row) => readonly string[]>>
}

/** Number of rows that each change looks at for expired ones. */
const SWEPT_PER_CHANGE = 2

/**
 * Rows of accounts in this process, by name. The number and the size of the rows are limited; see {@link AccountShares}.
 * Each change deletes some expired rows, so no separate job is needed.
 */
export class MemoryTable<Row extends { readonly accountId: string }, Index extends string = never> {
  readonly #rows = new Map<string, Row>()
  readonly #cursor = new MapCursor(this.#rows)
  readonly #shares: AccountShares
  readonly #options: MemoryTableOptions<Row, Index>
  /** Names of the rows of each key, by name of the index. */
  readonly #indexes: readonly MemoryIndex<Row>[]
  #newestMs = Number.NEGATIVE_INFINITY

  constructor(options: MemoryTableOptions<Row, Index>) {
    this.#options = options
    this.#shares = new AccountShares(options.maxCount, options.maxBytes)
    this.#indexes = Object.entries<MemoryIndex<Row>['keysOf']>(options.indexes ?? {}).map(([name, keysOf]) => ({
      name,
      keysOf,
      names: new Map(),
    }))
  }

  /** Returns a row, unless it has expired at `nowMs`. */
  get(name: string, nowMs = Number.NEGATIVE_INFINITY): Row | undefined {
    const row = this.#rows.get(name)
    return row === undefined || this.#expiry(row) <= nowMs ? undefined : row
  }

  /** Returns all rows, expired or not. */
  all(): Iterable<Row> {
    return this.#rows.values()
  }

  /** Returns the rows of a key, in the order in which they got it, unless they have expired at `nowMs`. */
  *by(index: Index, key: string, nowMs = Number.NEGATIVE_INFINITY): Iterable<Row> {
    for (const name of this.#indexNamed(index).names.get(key) ?? []) {
      const row = this.get(name, nowMs)
      if (row !== undefined) yield row
    }
  }

  /** Returns the keys of an index that have rows. */
  keys(index: Index): Iterable<string> {
    return this.#indexNamed(index).names.keys()
  }

  /**
   * Adds a row or replaces the one with its name, as the newest of its account.
   * @param nowMs Current time in Unix milliseconds, for the expiry of other rows.
   */
  set(row: Row, nowMs = Number.NEGATIVE_INFINITY): void {
    const { nameOf, byteLengthOf, expiresAtMsOf, isLimited } = this.#options
    const name = nameOf(row)
    this.#reindex(name, this.#rows.get(name), row)
    this.#rows.set(name, row)
    if (isLimited === undefined || isLimited(row))
      this.#shares.set(row.accountId, name, byteLengthOf?.(row), expiresAtMsOf?.(row))
    else this.#shares.delete(row.accountId, name)
    this.#newestMs = Math.max(this.#newestMs, nowMs)
    this.#sweep(row.accountId)
  }

  /** Deletes a row. Returns false if there is none. */
  delete(name: string): boolean {
    const row = this.#rows.get(name)
    if (row === undefined) return false
    this.#reindex(name, row, undefined)
    this.#shares.delete(row.accountId, name)
    return this.#rows.delete(name)
  }

  /** Returns how much of an account the limits count, without expired rows. */
  stored(accountId: string, nowMs: number): StoredUsage {
    return this.#shares.usage(accountId, nowMs, (name) => this.#expiry(this.#rows.get(name)!))
  }

  #expiry(row: Row): number {
    return this.#options.expiresAtMsOf?.(row) ?? Number.POSITIVE_INFINITY
  }

  #sweep(accountId: string): void {
    for (let count = 0; count < SWEPT_PER_CHANGE && this.#options.expiresAtMsOf !== undefined; count++) {
      const next = this.#cursor.next()
      if (next !== undefined && this.#expiry(next[1]) <= this.#newestMs) this.delete(next[0])
    }
    for (const surplus of this.#shares.surplus(accountId)) this.delete(surplus)
  }

  #indexNamed(name: Index): MemoryIndex<Row> {
    return this.#indexes.find((index) => index.name === name)!
  }

  #reindex(name: string, before: Row | undefined, after: Row | undefined): void {
    for (const { keysOf, names } of this.#indexes) {
      const [old, current] = [before === undefined ? [] : keysOf(before), after === undefined ? [] : keysOf(after)]
      // A row that keeps its keys keeps its place among the others.
      if (old.length === current.length && old.every((key, index) => key === current[index])) continue
      for (const key of old) {
        const others = names.get(key)
        others?.delete(name)
        if (others?.size === 0) names.delete(key)
      }
      for (const key of current) {
        const others = names.get(key)
        if (others === undefined) names.set(key, new Set([name]))
        else others.add(name)
      }
    }
  }
}

interface MemoryIndex<Row> {
  readonly name: string
  readonly keysOf: (row: Row) => readonly string[]
  readonly names: Map<string, Set<string>>
}
