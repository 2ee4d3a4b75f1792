import { formatDollars } from '../core/money.ts'
import type { SpendingCap } from '../stores/principal.ts'
import type { UsageRetentionDays } from '../usage/usage-recorder.ts'

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** What a configuration file holds itself where a variable would name a file; undefined: nothing. */
export interface Documents {
  /** Of the configuration file, for errors. */
  readonly name: string
  /** Folder of the configuration file, from which paths in it begin. Empty: the working directory. */
  readonly folder: string
  readonly models?: unknown
  readonly vendors?: unknown
  readonly prices?: unknown
  readonly plans?: unknown
}

/** A command's settings and output. */
export interface Terminal {
  readonly environment: Environment
  /** Default: nothing. */
  readonly documents?: Documents | undefined
  /** What the configuration file says of it. Default: nothing. */
  readonly usageRetention?: UsageRetentionDays | undefined
  /** Writes one line to standard output. */
  print(line: string): void
  /** Writes one line to standard error. If omitted, the line is not written. */
  warn?(line: string): void
  /** Makes the process end with 1 once the command is over. Absent: the caller reads what was printed. */
  fail?(): void
}

/** A text of others as one line, in which nothing is an order to the terminal. */
export function oneLine(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Prints rows with their cells in columns, two spaces apart. */
export function printRows({ print }: Terminal, given: readonly (readonly string[])[]): void {
  const rows = given.map((row) => row.map(oneLine))
  const widths: number[] = []
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
  }
  for (const row of rows) {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
    print(cells.join('  ').trimEnd())
  }
}

/** Nano-dollars as text: `$1.5`, `-$0.003`. */
export function dollarsText(nanoDollars: bigint): string {
  return nanoDollars < 0n ? `-$${formatDollars(-nanoDollars)}` : `$${formatDollars(nanoDollars)}`
}

/** Tells how to get the next page, below the rows of one. */
export function printNext({ print }: Terminal, next: string | undefined): void {
  if (next !== undefined) print(`more: --cursor ${next}`)
}

/** A spending cap as text: `$50 a month`. */
export function capText(cap: SpendingCap): string {
  return `${dollarsText(cap.amount)} a ${cap.period}`
}

/** A spending cap as JSON. */
export function capJson(cap: SpendingCap | undefined): { amount: string; period: string } | null {
  return cap === undefined ? null : { amount: formatDollars(cap.amount), period: cap.period }
}
