import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { findProgram } from './find-program.mjs'
import { freePort, startProgram } from './program-process.mjs'

/** Folder of the programs of each major version on Debian. */
const VERSIONS_FOLDER = '/usr/lib/postgresql'
/** How often a server that starts is checked before it counts as broken: 30 seconds. */
const MAX_READY_CHECKS = 600

/** The path of a program of PostgreSQL, of the newest version, or undefined. */
export function postgresProgram(name) {
  const versions = existsSync(VERSIONS_FOLDER) ? readdirSync(VERSIONS_FOLDER) : []
  const newest = versions.sort((left, right) => Number(right) - Number(left))[0]
  const debian = newest === undefined ? undefined : join(VERSIONS_FOLDER, newest, 'bin', name)
  return debian !== undefined && existsSync(debian) ? debian : findProgram(name)
}

/** The version of the server, such as `15.14`. */
export function postgresVersion() {
  const program = postgresProgram('postgres')
  return program && /\d+(\.\d+)*/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[0]
}

/**
 * Starts a PostgreSQL server with its own settings, so every commit is flushed to the disk, in a temporary folder.
 * @param settings Settings of the server, such as `shared_buffers=512MB`.
 * @returns `url`; `cpuMicroseconds`, of all its processes; `stop`
 */
export async function startPostgresServer(settings = []) {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-postgres-'))
  const user = unprivilegedUser()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const environment = { ...process.env, LC_ALL: 'C' }
  const options = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  execFileSync(postgresProgram('initdb'), options, {
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'ignore', 2],
    ...user,
  })
  const port = await freePort()
  const server = ['-D', data, '-p', String(port), '-k', folder, '-c', 'listen_addresses=127.0.0.1']
  for (const setting of settings) server.push('-c', setting)
  const running = await startProgram([postgresProgram('postgres'), ...server], {
    port,
    environment,
    user,
    // After SIGTERM it would wait for its clients to disconnect.
    stopSignal: 'SIGINT',
    onStop: () => rmSync(folder, { recursive: true, force: true }),
  })
  // The port is open before the server answers.
  for (let attempt = 0; !isReady(port); attempt++) {
    if (attempt === MAX_READY_CHECKS) throw new Error('PostgreSQL has started and does not answer')
    await setTimeout(50)
  }
  return { ...running, url: `postgres://postgres@127.0.0.1:${port}/postgres` }
}

function isReady(port) {
  const host = ['-h', '127.0.0.1', '-p', String(port), '-t', '1', '-q']
  return spawnSync(postgresProgram('pg_isready'), host).status === 0
}

/** PostgreSQL refuses to run as root. */
function unprivilegedUser() {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}
