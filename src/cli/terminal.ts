import { formatDollars } from '../core/money.ts'
import type { SpendingCap } from '../stores/principal.ts'
import type { UsageRetentionDays } from '../usage/usage-recorder.ts'

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Contents of a configuration file for variables that would name a file, or `undefined` if there are none. */
export interface Documents {
  /** Name of the configuration file, for errors. */
  readonly name: string
  /** Folder that paths in the configuration file are relative to. If empty, the working directory. */
  readonly folder: string
  readonly models?: unknown
  readonly vendors?: unknown
  readonly prices?: unknown
  readonly plans?: unknown
}

/** Settings and output of a command. */
export interface Terminal {
  readonly environment: Environment
  /** Contents of the configuration file. Default: none. */
  readonly documents?: Documents | undefined
  /** Retention of usage records in the configuration file. Default: none. */
  readonly usageRetention?: UsageRetentionDays | undefined
  /** Writes one line to standard output. */
  print(line: string): void
  /** Writes one line to standard error. If omitted, the line is not written. */
  warn?(line: string): void
  /** Makes the process exit with status 1 after the command. If omitted, the caller has to read the output. */
  fail?(): void
}

/** Returns text from outside as one line, without control characters for the terminal. */
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

/** Formats nano-dollars: `$1.5`, `-$0.003`. */
export function dollarsText(nanoDollars: bigint): string {
  return nanoDollars < 0n ? `-$${formatDollars(-nanoDollars)}` : `$${formatDollars(nanoDollars)}`
}

/** Prints how to get the next page, below the rows of the current one. */
export function printNext({ print }: Terminal, next: string | undefined): void {
  if (next !== undefined) print(`more: --cursor ${next}`)
}

/** Formats a spending cap: `$50 a month`. */
export function capText(cap: SpendingCap): string {
  return `${dollarsText(cap.amount)} a ${cap.period}`
}

/** Returns a spending cap as JSON. */
export function capJson(cap: SpendingCap | undefined): { amount: string; period: string } | null {
  return cap === undefined ? null : { amount: formatDollars(cap.amount), period: cap.period }
}
