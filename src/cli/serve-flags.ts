import type { CommandArguments, OptionDefinition } from './command.ts'

/** Settings of `serve` and `check` that only flags can set. */
export interface ServeFlags {
  /** Whether offline stand-ins replace vendors without a key. */
  readonly useStandIns: boolean
  /** Whether to serve the console and the admin API, too. */
  readonly serveConsole: boolean
  /** Whether to use example prices if none are set, and to make example calls. Requires stand-ins. */
  readonly showExamples: boolean
}

/** Flags of `serve` and `check` that no variable sets. */
export const SERVE_FLAGS: Readonly<Record<string, OptionDefinition>> = {
  sandbox: {
    text: 'use offline stand-ins for every vendor without a key, and memory: as the store unless one is set',
  },
  console: { text: 'also serve the console at /console/ and the admin API at /admin/v1' },
  examples: { text: 'with --sandbox: use example prices if none are set, and make some example calls' },
}

/** @param file Whether the configuration file enables the console. */
export function readServeFlags(
  given: Pick<CommandArguments, 'flag'>,
  file: Pick<ServeFlags, 'serveConsole'>,
): ServeFlags {
  return {
    useStandIns: given.flag('sandbox'),
    serveConsole: given.flag('console') || file.serveConsole,
    showExamples: given.flag('examples'),
  }
}
