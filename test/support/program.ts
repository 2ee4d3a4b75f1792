import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { build } from 'tsup'

const root = join(import.meta.dirname, '../..')

/** Separate process that runs a test program and exchanges messages with the test, which may contain bigints. */
export interface Program {
  readonly child: ChildProcess
  /** The next message of the program. Rejected when it ends before it sends one. */
  message<Message>(): Promise<Message>
  send(message: string): void
  /** Resolves when the process has ended. Messages that it sent before are there then. */
  readonly ended: Promise<void>
  /** Messages that {@link message} has not handed out yet. */
  readonly unread: readonly unknown[]
}

/** A compiled program. */
export interface CompiledProgram {
  /** Starts a process, which finds the argument as JSON in `process.argv[2]`. */
  (argument: unknown): Program
  /** Deletes what was compiled. */
  remove(): void
}

/** Compiles a TypeScript program, because Node 20 cannot run one. */
export async function compileProgram(source: string): Promise<CompiledProgram> {
  const name = basename(source, '.ts')
  // Below node_modules, so that the program finds the packages of this project.
  const folder = join(root, 'node_modules/.cache/signalbox-tests', randomBytes(8).toString('hex'))
  await build({
    entry: { [name]: relative(root, source) },
    format: 'esm',
    target: 'node20',
    outDir: folder,
    outExtension: () => ({ js: '.mjs' }),
    skipNodeModulesBundle: true,
    config: false,
    silent: true,
    removeNodeProtocol: false,
  })
  return Object.assign((argument: unknown) => startProgram(join(folder, `${name}.mjs`), argument), {
    remove: () => rmSync(folder, { recursive: true, force: true }),
  })
}

function startProgram(file: string, argument: unknown): Program {
  const options = { serialization: 'advanced', stdio: ['ignore', 'inherit', 'inherit', 'ipc'] } as const
  const child = fork(file, [JSON.stringify(argument)], { ...options, stdio: [...options.stdio] })
  const unread: unknown[] = []
  let wake = (): void => {}
  let hasEnded = false
  child.on('message', (message) => {
    unread.push(message)
    wake()
  })
  // `disconnect` comes after the last message; `exit` may come before it.
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')]).then(() => {
    hasEnded = true
    wake()
  })
  return {
    child,
    unread,
    ended,
    async message<Message>() {
      while (unread.length === 0) {
        if (hasEnded) throw new Error(`${basename(file)} ended without an answer`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return unread.shift() as Message
    },
    send: (message) => void child.send(message),
  }
}
