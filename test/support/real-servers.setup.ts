import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { postgresFolder, startPostgres } from './start-postgres.ts'
import { redisFolder, startRedis } from './start-redis.ts'

/** Kinds of servers that tests can ask for. */
export type ServerKind = 'postgres' | 'redis'

/** Where a server is, or why there is none. */
export type FoundServer = { readonly url: string } | { readonly missing: string }

declare module 'vitest' {
  export interface ProvidedContext {
    /** Port of the loopback address on which test files ask for servers. */
    realServersPort: number
  }
}

/**
 * Lends one server of each kind to all test files of a run. A server is started when the first file asks, so that a run
 * which needs none pays for none, and ended when the run is over.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const found = new Map<string, Promise<FoundServer>>()
  const stops: (() => Promise<void>)[] = []
  const find = (kind: ServerKind): Promise<FoundServer> =>
    kind === 'postgres' ? findPostgres(stops) : findRedis(stops)
  const broker = createServer((request, response) => {
    const kind = request.url === '/postgres' ? 'postgres' : 'redis'
    const answer = found.get(kind) ?? find(kind).catch((error: Error) => ({ missing: error.message }))
    found.set(kind, answer)
    void answer.then((server) => response.end(JSON.stringify(server)))
  })
  broker.listen(0, '127.0.0.1')
  await once(broker, 'listening')
  project.provide('realServersPort', (broker.address() as AddressInfo).port)
  return async () => {
    broker.closeAllConnections()
    broker.close()
    await Promise.all(found.values())
    await Promise.all(stops.map((stop) => stop()))
  }
}

async function findPostgres(stops: (() => Promise<void>)[]): Promise<FoundServer> {
  const given = process.env['DATABASE_URL']
  if (given !== undefined && given !== '') return { url: given }
  const standard = 'postgres://postgres@127.0.0.1:5432/postgres'
  if (await answersAsPostgres(standard)) return { url: standard }
  if (postgresFolder() === undefined) {
    return {
      missing: 'DATABASE_URL is not set, nothing answers on port 5432, and there is no initdb to start one with',
    }
  }
  const server = await startPostgres({ fsync: 'off' })
  stops.push(() => server.stop())
  return { url: server.url }
}

async function answersAsPostgres(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  try {
    await client.connect()
    await client.query('SELECT 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function findRedis(stops: (() => Promise<void>)[]): Promise<FoundServer> {
  const given = process.env['REDIS_URL']
  if (given !== undefined && given !== '') return { url: given }
  if (await answersAsRedis(6379)) return { url: 'redis://127.0.0.1:6379' }
  if (redisFolder() === undefined) {
    return { missing: 'REDIS_URL is not set, nothing answers on port 6379, and there is no redis-server to start' }
  }
  const server = await startRedis()
  stops.push(() => server.stop())
  return { url: server.url }
}

function answersAsRedis(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const end = (answers: boolean): void => {
      resolve(answers)
      socket.destroy()
    }
    socket.setTimeout(2_000, () => end(false))
    socket.once('error', () => end(false))
    socket.once('connect', () => socket.write('PING\r\n'))
    socket.once('data', (reply) => end(reply.toString().startsWith('+PONG')))
  })
}
