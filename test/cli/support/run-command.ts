import { accountsCommand } from '../../../src/cli/accounts-command.ts'
import { catalogCommand, modelsCommand } from '../../../src/cli/catalog-command.ts'
import { holdsCommand } from '../../../src/cli/holds-command.ts'
import { keysCommand } from '../../../src/cli/keys-command.ts'
import { usageCommand } from '../../../src/cli/usage-command.ts'

const COMMANDS = {
  accounts: accountsCommand,
  catalog: catalogCommand,
  holds: holdsCommand,
  keys: keysCommand,
  models: modelsCommand,
  usage: usageCommand,
} as const

/** Runs a command in this process, such as `accounts …`; gives the lines it prints. */
export async function runCommand(
  words: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<string[]> {
  const lines: string[] = []
  const terminal = { environment, print: (line: string) => void lines.push(line) }
  const [command, ...rest] = words
  await COMMANDS[command as keyof typeof COMMANDS](rest, terminal)
  return lines
}

/** Runs a command with `--json`; gives what it prints. */
export async function runForJson(
  words: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<Record<string, unknown> & { readonly data: readonly Record<string, unknown>[] }> {
  const lines = await runCommand([...words, '--json'], environment)
  if (lines.length !== 1) throw new Error(`one line of JSON was expected: ${lines.join('\n')}`)
  return JSON.parse(lines[0]!)
}
