import type { CommandArguments, OptionDefinition } from './command.ts'

/** What `serve` and `check` are told by flags alone. */
export interface ServeFlags {
  /** Offline stand-ins take the place of vendors without a key. */
  readonly useStandIns: boolean
  /** Also serve the console and the admin API? */
  readonly serveConsole: boolean
  /** Example prices where none are set, and some calls to look at? Needs stand-ins. */
  readonly showExamples: boolean
}

/** Flags of `serve` and `check` that no variable sets. */
export const SERVE_FLAGS: Readonly<Record<string, OptionDefinition>> = {
  sandbox: {
    text: 'offline stand-ins answer for every vendor that has no key; the store is memory: unless one is set',
  },
  console: { text: 'also serve the page for operators at /console/ and the admin API at /admin/v1' },
  examples: { text: 'with --sandbox: example prices where none are set, and some calls to look at' },
}

/** @param file Does the configuration file ask for the console? */
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
