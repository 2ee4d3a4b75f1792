import { runSignalbox } from '../../../src/cli/signalbox.ts'

/** Runs a command in this process, such as `accounts …`, and returns the printed lines. */
export async function runCommand(
  words: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<string[]> {
  const lines: string[] = []
  await runSignalbox(words, { environment, print: (line) => void lines.push(line) }, '0.0.0')
  return lines
}

/** Runs a command in this process. Returns what it prints on both streams, and whether its process would exit with status 1. */
export async function runCommandWithWarnings(
  words: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<{ readonly lines: string[]; readonly warnings: string[]; readonly hasFailed: boolean }> {
  const lines: string[] = []
  const warnings: string[] = []
  let hasFailed = false
  const terminal = {
    environment,
    print: (line: string) => void lines.push(line),
    warn: (line: string) => void warnings.push(line),
    fail: () => {
      hasFailed = true
    },
  }
  await runSignalbox(words, terminal, '0.0.0')
  return { lines, warnings, hasFailed }
}

/** Runs a command with `--json`, and returns its output. */
export async function runForJson(
  words: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<Record<string, unknown> & { readonly data: readonly Record<string, unknown>[] }> {
  const lines = await runCommand([...words, '--json'], environment)
  if (lines.length !== 1) throw new Error(`one line of JSON was expected: ${lines.join('\n')}`)
  return JSON.parse(lines[0]!)
}
