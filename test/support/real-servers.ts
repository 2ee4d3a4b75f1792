import { inject } from 'vitest'
import type { FoundServer, ServerKind } from './real-servers.setup.ts'
import { nginxFolder } from './start-nginx.ts'
import { pgbouncerFolder } from './start-pgbouncer.ts'
import { postgresFolder } from './start-postgres.ts'
import { redisFolder } from './start-redis.ts'

/** A server that tests may use, or the reason why the tests that need it are left out. */
export type RealServer =
  | { readonly url: string; readonly missing?: undefined }
  | { readonly url: ''; readonly missing: string }

/**
 * Finds a real server for a test file, called at its top: `DATABASE_URL` or `REDIS_URL` if set, else one on the default
 * port, else one that this run starts. Others use it too: work in a schema or under a key prefix of your own.
 *
 * @example
 * const server = await realServer('redis')
 * describe.skipIf(server.missing !== undefined)('limits on Redis', () => {})
 *
 * @throws Error when there is none and `SIGNALBOX_REQUIRE_SERVERS` is 1, so that the gate leaves nothing out.
 */
export async function realServer(kind: ServerKind): Promise<RealServer> {
  const answer = await fetch(`http://127.0.0.1:${inject('realServersPort')}/${kind}`)
  const found = (await answer.json()) as FoundServer
  if ('url' in found) return { url: found.url }
  return { url: '', missing: leftOut(`no ${kind} server: ${found.missing}`) }
}

/**
 * Why a test that must start and end a server of its own is left out; undefined when it can be run.
 * @throws Error as {@link realServer} does.
 */
export function missingProgram(kind: ServerKind | 'nginx' | 'pgbouncer'): string | undefined {
  const find = { postgres: postgresFolder, redis: redisFolder, nginx: nginxFolder, pgbouncer: pgbouncerFolder }[kind]
  return find() === undefined ? leftOut(`no ${kind} to start on this machine`) : undefined
}

/**
 * Says on the console that tests are left out, and why; the result is the message.
 * @throws Error when `SIGNALBOX_REQUIRE_SERVERS` is 1.
 */
export function leftOut(message: string): string {
  if (process.env['SIGNALBOX_REQUIRE_SERVERS'] === '1') throw new Error(message)
  console.warn(`tests left out: ${message}`)
  return message
}
