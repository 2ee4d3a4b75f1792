import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { folderOfProgram, freePort, type StartedProcess, startProcess } from './started-process.ts'

/** A Redis server of our own in a temporary folder, empty at every start. */
export interface StartedRedis {
  /** `redis://127.0.0.1:…` */
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Kills the server, as the kernel would. */
  kill(): Promise<void>
  /** Starts it again on the same port after {@link kill}. */
  resume(): Promise<void>
  /** Ends it and removes its folder. */
  stop(): Promise<void>
}

/** The folder of `redis-server`; undefined when there is none. */
export function redisFolder(): string | undefined {
  return folderOfProgram('redis-server', ['/usr/bin', '/usr/local/bin'])
}

/** Starts one on a free port. */
export async function startRedis(): Promise<StartedRedis> {
  const programs = redisFolder()
  if (programs === undefined) throw new Error('there is no redis-server on this machine')
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-redis-'))
  const port = await freePort()
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no']
  const start = (): Promise<StartedProcess> =>
    startProcess(join(programs, 'redis-server'), args, 'eady to accept connections', { cwd: folder })
  let server = await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid
    },
    kill: () => server.end('SIGKILL'),
    async resume() {
      server = await start()
    },
    async stop() {
      await server.end('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
