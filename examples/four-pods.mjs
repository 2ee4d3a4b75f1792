// @ts-check
/*
 * Shows that four pods share balances and limits: four processes use one PostgreSQL and one Redis, and share one port.
 *
 *   npm run build && DATABASE_URL=postgres://… REDIS_URL=redis://… node examples/four-pods.mjs
 */
import cluster from 'node:cluster'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Redis } from 'ioredis'
import pg from 'pg'
import { anthropic, createGateway, formatDollars, listPrices } from 'signalbox'
import { nodeHandler } from 'signalbox/node'
import { postgresStore } from 'signalbox/postgres'
import { redisLimits } from 'signalbox/redis'
import { sandboxVendors } from 'signalbox/testing'

const { DATABASE_URL, REDIS_URL } = process.env
if (!DATABASE_URL || !REDIS_URL) throw new Error('set DATABASE_URL and REDIS_URL to your own servers')
const vendors = [anthropic({ apiKey: 'stand-in' })]
const transport = sandboxVendors().transport()

// #region shown
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 5 })
const client = new Redis(REDIS_URL, { enableOfflineQueue: false, maxRetriesPerRequest: 0, lazyConnect: true })
await client.connect()
// Each process enforces a quarter of the limit while Redis is unavailable.
const shared = redisLimits({ client, expectedInstances: 4 })
const gateway = createGateway({
  vendors,
  transport,
  prices: listPrices(),
  store: postgresStore({ pool }),
  limits: { requestsPerMinute: 30 },
  rateLimiter: shared.rateLimiter,
  concurrencyLimiter: shared.concurrencyLimiter,
})
// #endregion

await gateway.start()
if (cluster.isPrimary) {
  const pods = Array.from({ length: 4 }, () => cluster.fork())
  const [listening] = await Promise.all(pods.map((pod) => once(pod, 'listening')))
  const { id } = await gateway.accounts.create({ id: `acct_${randomUUID()}` })
  await gateway.accounts.credit(id, '1')
  const { key } = await gateway.keys.create({ accountId: id })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' }
  const messages = [{ role: 'user', content: 'hello' }]
  const body = JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 50, messages })
  const url = `http://127.0.0.1:${listening?.[0].port}/v1/chat/completions`
  const answers = await Promise.all(Array.from({ length: 40 }, () => fetch(url, { method: 'POST', headers, body })))
  const answered = answers.filter(({ status }) => status === 200).length
  const limited = answers.filter(({ status }) => status === 429).length
  console.log(
    `${new Set(answers.map(({ headers }) => headers.get('x-pod'))).size} pods: ${answered} answered, ${limited} refused`,
  )
  const charges = (await gateway.accounts.ledger(id)).filter(({ kind }) => kind === 'charge')
  console.log(`${charges.length} charges, balance ${formatDollars((await gateway.accounts.get(id))?.balance ?? 0n)}`)
  for (const pod of pods) pod.disconnect()
} else {
  const handle = nodeHandler(gateway)
  createServer((request, response) => handle(request, response.setHeader('x-pod', process.pid))).listen(0, '127.0.0.1')
  await once(process, 'disconnect')
}
await gateway.close()
client.disconnect()
await pool.end()
