import { entryId, entryNumber, type JournalQuery, type JournalSums, type LedgerEntry, sumsOf } from '../journal.ts'

/** Stored line, without the fields that all lines of the account share. */
export interface JournalLine extends Omit<LedgerEntry, 'id' | 'accountId'> {
  /** Number of the line in the ledger, from 1. */
  readonly number: number
  /** Key and day of a charge, in which it counts. */
  readonly keyId: string | undefined
  readonly period: number | undefined
}

/**
 * Journal of one account. Only the newest lines are kept, so that a process may run indefinitely: older ones are combined into
 * one line, which preserves the sum of all lines.
 */
export class MemoryJournal {
  readonly #accountId: string
  readonly #maxLines: number
  #lines: JournalLine[] = []
  #carriedForward: LedgerEntry | undefined

  constructor(accountId: string, maxLines: number) {
    this.#accountId = accountId
    this.#maxLines = maxLines
  }

  append(line: JournalLine): void {
    this.#lines.push(line)
    // Trimmed in large steps, so that the cost of a line does not depend on the number of lines.
    if (this.#lines.length >= this.#maxLines * 2) this.#carryForward(this.#lines.length - this.#maxLines)
  }

  /** Returns the newest lines, newest first. */
  newest(limit: number): readonly LedgerEntry[] {
    const count = Math.max(0, Math.min(limit, this.#lines.length))
    const newest = this.#lines
      .slice(this.#lines.length - count)
      .reverse()
      .map((line) => this.#entry(line))
    return this.#carriedForward !== undefined && limit > count ? [...newest, this.#carriedForward] : newest
  }

  find(number: bigint): JournalLine | undefined {
    return this.#lines.find((line) => BigInt(line.number) === number)
  }

  /** Returns lines; see {@link Journal.lines}. */
  query({ fromMs, untilMs, order, after, limit }: Omit<JournalQuery, 'accountId'>): readonly LedgerEntry[] {
    const oldestFirst = this.#all().filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs < untilMs)
    const ordered = order === 'oldest' ? oldestFirst : oldestFirst.reverse()
    const isBehind = ({ id }: LedgerEntry): boolean => {
      if (after === undefined) return true
      const number = entryNumber(id) ?? 0n
      return order === 'oldest' ? number > after.number : number < after.number
    }
    return ordered.filter(isBehind).slice(0, Math.max(0, limit))
  }

  /** Returns sums; see {@link Journal.sums}. */
  sums({ fromMs, untilMs }: Pick<JournalQuery, 'fromMs' | 'untilMs'>): JournalSums {
    const entries = this.#all()
    const before = entries.filter(({ createdAtMs }) => createdAtMs < fromMs)
    return {
      openingBalance: before.reduce((sum, entry) => sum + entry.amount, 0n),
      openingOwed: before.reduce((sum, entry) => sum + entry.owed, 0n),
      sums: sumsOf(entries.filter(({ createdAtMs }) => createdAtMs >= fromMs && createdAtMs < untilMs)),
    }
  }

  /** Returns all lines, oldest first. */
  #all(): LedgerEntry[] {
    const entries = this.#lines.map((line) => this.#entry(line))
    return this.#carriedForward === undefined ? entries : [this.#carriedForward, ...entries]
  }

  #entry({ number, keyId: _, period: __, ...line }: JournalLine): LedgerEntry {
    return { id: entryId(number), accountId: this.#accountId, ...line }
  }

  #carryForward(count: number): void {
    const folded = this.#lines.slice(0, count)
    const last = folded.at(-1)
    if (last === undefined) return
    const amount = folded.reduce((sum, line) => sum + line.amount, this.#carriedForward?.amount ?? 0n)
    const owed = folded.reduce((sum, line) => sum + line.owed, this.#carriedForward?.owed ?? 0n)
    this.#lines = this.#lines.slice(count)
    this.#carriedForward = {
      id: `carried_forward_entry_${last.number}`,
      accountId: this.#accountId,
      kind: amount < 0n ? 'charge' : 'credit',
      amount,
      owed,
      holdId: undefined,
      description: 'carried forward',
      createdAtMs: last.createdAtMs,
      balanceAfter: last.balanceAfter,
    }
  }
}
