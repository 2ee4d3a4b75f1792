import type { Environment } from './serve-settings.ts'

/** Where a command reads its settings and writes its lines. */
export interface Terminal {
  readonly environment: Environment
  /** Writes one line to standard output. */
  print(line: string): void
}
