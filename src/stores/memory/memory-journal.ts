import type { LedgerEntry } from '../ledger.ts'

/** A stored line, without the fields that all lines of the account share. */
export interface JournalLine extends Omit<LedgerEntry, 'id' | 'accountId'> {
  /** Counts the lines of the ledger, from 1. */
  readonly number: number
}

/**
 * The journal of one account. So that a process may run for ever, only the newest lines are kept: older ones are carried
 * forward into one line, which keeps the sum of all lines what it was.
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
    // Trimmed in large steps, so that one line costs the same however many there are.
    if (this.#lines.length >= this.#maxLines * 2) this.#carryForward(this.#lines.length - this.#maxLines)
  }

  /** Newest first. */
  newest(limit: number): readonly LedgerEntry[] {
    const count = Math.max(0, Math.min(limit, this.#lines.length))
    const newest = this.#lines
      .slice(this.#lines.length - count)
      .reverse()
      .map((line) => this.#entry(line))
    return this.#carriedForward !== undefined && limit > count ? [...newest, this.#carriedForward] : newest
  }

  #entry({ number, ...line }: JournalLine): LedgerEntry {
    return { id: `entry_${number}`, accountId: this.#accountId, ...line }
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
    }
  }
}
