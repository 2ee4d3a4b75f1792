import type { Terminal } from './terminal.ts'
import { printRows } from './terminal.ts'

/** Result of one check by `signalbox check`. */
export interface Check {
  /** Name of the checked part: `store`, `vendor openai`, … */
  readonly name: string
  /** Status. Only `failed` makes the command exit with status 1. `unchecked` means that a check would have cost money. */
  readonly status: 'ok' | 'warning' | 'unchecked' | 'failed'
  readonly message: string
  /** Setting or step that solves the problem. */
  readonly remedy?: string
}

/** Returns the part of a vendor’s `configuredBy` that concerns the command line, without functions that a program would call. */
export function variablesOf(configuredBy: string): string {
  return configuredBy.replace(/,? or [\w.]+\(.*$/, '')
}

/** Prints all checks, as a table or as one line of JSON. */
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
