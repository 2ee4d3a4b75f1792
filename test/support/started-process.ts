import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'

/** A server program that a test started and must end. */
export interface StartedProcess {
  readonly pid: number
  /** Sends the signal and waits until the process has ended. Harmless when it has ended before. */
  end(signal: NodeJS.Signals): Promise<void>
}

/**
 * Starts a server program and waits until it has written `readyText` to its output.
 * @throws Error with the program's own words when it ends before.
 */
export async function startProcess(
  program: string,
  args: readonly string[],
  readyText: string,
  options: SpawnOptions = {},
): Promise<StartedProcess> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close').catch(() => undefined)
  // A test run that is cut short must not leave servers behind.
  const endWithParent = (): void => void child.kill('SIGQUIT')
  process.once('exit', endWithParent)
  void ended.then(() => process.removeListener('exit', endWithParent))
  await untilReady(child, program, readyText)
  return {
    pid: child.pid!,
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal)
      await ended
    },
  }
}

function untilReady(child: ChildProcess, program: string, readyText: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = ''
    const read = (chunk: Buffer): void => {
      output = (output + chunk).slice(-10_000)
      if (output.includes(readyText)) resolve()
    }
    child.stdout!.on('data', read)
    child.stderr!.on('data', read)
    child.once('error', reject)
    child.once('close', () => reject(new Error(`${program} ended before it was ready: ${output}`)))
  })
}

/** The folder of `PATH`, or of `folders`, that holds the program; undefined when there is none. */
export function folderOfProgram(program: string, folders: readonly string[] = []): string | undefined {
  return [...(process.env['PATH'] ?? '').split(delimiter), ...folders].find((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return folder !== ''
    } catch {
      return false
    }
  })
}

/** A port of the loopback address on which nothing listens now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
