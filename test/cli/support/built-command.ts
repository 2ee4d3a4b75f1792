import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'tsup'
import manifest from '../../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '../../..')

/** Result of a finished command. */
export interface Finished {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** A server in a process of its own. */
export interface ServerProcess {
  readonly url: string
  readonly process: ChildProcess
  /** Lines printed until it was ready. */
  readonly lines: readonly string[]
  /** Returns the log so far. */
  readonly log: () => string
  /** The next line of the log that holds the text. */
  logged(text: string): Promise<string>
  /** Sends a signal, waits for the end, and returns the exit status. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** The command line, built from the source as it is now, in a folder of its own. */
export interface BuiltCommand {
  /** A folder for databases and price files. */
  readonly folder: string
  run(words: readonly string[], environment?: Record<string, string>): Promise<Finished>
  serve(words: readonly string[], environment?: Record<string, string>): Promise<ServerProcess>
  /** Ends servers that still run, and removes the folder. */
  remove(): Promise<void>
}

/**
 * Builds the command as the package does.
 * @param packages Installed packages: all that the repository has, or `dependencies`, as `npx` installs them.
 */
export async function builtCommand(packages: 'all' | 'dependencies' = 'all'): Promise<BuiltCommand> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-cli-'))
  await cp(join(root, 'package.json'), join(folder, 'package.json'))
  if (packages === 'all') await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  else await linkDependencies(folder)
  await build({
    config: false,
    entry: { cli: join(root, 'src/cli/main.ts') },
    outDir: join(folder, 'dist'),
    format: 'esm',
    target: 'node20',
    platform: 'node',
    removeNodeProtocol: false,
    silent: true,
  })
  const script = join(folder, 'dist/cli.js')
  const running = new Set<ChildProcess>()
  const options = (environment: Record<string, string>) => ({
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, PORT: '0', ...environment },
  })

  return {
    folder,
    run: (words, environment = {}) =>
      new Promise((resolve) => {
        execFile(process.execPath, [script, ...words], options(environment), (error, stdout, stderr) =>
          resolve({ exitCode: error === null ? 0 : Number(error.code), stdout, stderr }),
        )
      }),
    async serve(words, environment = {}) {
      const child = spawn(process.execPath, [script, 'serve', ...words], options(environment))
      running.add(child)
      child.once('exit', () => running.delete(child))
      return serverProcess(child)
    },
    async remove() {
      for (const child of running) child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Links the runtime dependencies of the package, and nothing else. */
async function linkDependencies(folder: string): Promise<void> {
  for (const name of Object.keys(manifest.dependencies)) {
    const path = join(folder, 'node_modules', name)
    await mkdir(dirname(path), { recursive: true })
    await symlink(join(root, 'node_modules', name), path)
  }
}

async function serverProcess(child: ReturnType<typeof spawn>): Promise<ServerProcess> {
  let log = ''
  const watchers = new Set<() => void>()
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log += text
    for (const watch of watchers) watch()
  })
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout! })) {
    lines.push(line)
    if (line.startsWith('curl ') || line.startsWith('models ')) break
  }
  const url = /http:\S+/.exec(lines[0] ?? '')?.[0]
  if (url === undefined) throw new Error(`the server did not start: ${log}`)
  return {
    url,
    process: child,
    lines,
    log: () => log,
    logged: (text) =>
      new Promise((resolve) => {
        const watch = (): void => {
          const line = log.split('\n').find((candidate) => candidate.includes(text))
          if (line === undefined) return
          watchers.delete(watch)
          resolve(line)
        }
        watchers.add(watch)
        watch()
      }),
    async end(signal) {
      const exited = once(child, 'exit')
      child.kill(signal)
      const [exitCode] = (await exited) as [number | null]
      return exitCode
    },
  }
}
