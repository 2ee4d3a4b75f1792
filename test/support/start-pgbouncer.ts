import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unprivilegedUser } from './start-postgres.ts'
import { folderOfProgram, freePort, startProcess } from './started-process.ts'

/** A PgBouncer of our own, with its configuration in a temporary folder. */
export interface StartedPgBouncer {
  /** `postgres://postgres@127.0.0.1:…/postgres` */
  readonly url: string
  /** Ends it and removes its folder. */
  stop(): Promise<void>
}

/** When a connection to the server goes back to the pool. */
export type PoolMode = 'session' | 'transaction' | 'statement'

/** The folder of `pgbouncer`; undefined when there is none. */
export function pgbouncerFolder(): string | undefined {
  return folderOfProgram('pgbouncer', ['/usr/sbin', '/usr/local/sbin'])
}

/**
 * Starts one on a free port, in front of a server that trusts everybody.
 * @param settings further settings, such as `{ default_pool_size: '3' }`.
 */
export async function startPgBouncer(
  serverUrl: string,
  mode: PoolMode,
  settings: Record<string, string> = {},
): Promise<StartedPgBouncer> {
  const programs = pgbouncerFolder()
  if (programs === undefined) throw new Error('there is no pgbouncer on this machine')
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-pgbouncer-'))
  const user = unprivilegedUser()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const port = await freePort()
  const { hostname, port: serverPort } = new URL(serverUrl)
  const lines = Object.entries({
    listen_addr: '127.0.0.1',
    listen_port: `${port}`,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: mode,
    ...settings,
  }).map(([name, value]) => `${name} = ${value}`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]\npostgres = host=${hostname} port=${serverPort} dbname=postgres user=postgres\n[pgbouncer]\n${lines.join('\n')}\n`,
  )
  const bouncer = await startProcess(join(programs, 'pgbouncer'), [file], 'process up', { cwd: folder, ...user })
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async stop() {
      await bouncer.end('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
