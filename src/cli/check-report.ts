import type { Terminal } from './terminal.ts'
import { printRows } from './terminal.ts'

/** What `signalbox check` has found out about one thing. */
export interface Check {
  /** `store`, `vendor openai`, … */
  readonly name: string
  /** `failed` alone makes the command end with 1. `unchecked`: it could not be told without costs. */
  readonly status: 'ok' | 'warning' | 'unchecked' | 'failed'
  readonly message: string
  /** What to set or do. */
  readonly remedy?: string
}

/** What of a vendor’s `configuredBy` an operator of the command sets: without what a program would call. */
export function variablesOf(configuredBy: string): string {
  return configuredBy.replace(/,? or [\w.]+\(.*$/, '')
}

/** Prints all of them, as a table or as one line of JSON. */
export function printChecks(checks: readonly Check[], terminal: Terminal, asJson: boolean): void {
  const isGood = checks.every(({ status }) => status !== 'failed')
  if (asJson) {
    const data = checks.map(({ remedy, ...check }) => ({ ...check, remedy: remedy ?? null }))
    terminal.print(JSON.stringify({ object: 'check', ok: isGood, data }))
    return
  }
  const rows = checks.flatMap(({ name, status, message, remedy }) => {
    const lines = message.split('\n')
    return [
      [status, name, lines[0] ?? ''],
      ...lines.slice(1).map((line) => ['', '', line]),
      ...(remedy === undefined ? [] : [['', '', `do: ${remedy}`]]),
    ]
  })
  printRows(terminal, [['result', 'of', 'what was found'], ...rows])
  const failed = checks.filter(({ status }) => status === 'failed').length
  terminal.print(isGood ? 'signalbox serve can start' : `${failed} of ${checks.length} checks failed`)
}
