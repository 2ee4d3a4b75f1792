import { afterEach, expect, it } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { defaultEngine } from '../stores/sqlite/support/sqlite-engines.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { MOUNTS, type Mounted } from './support/mounts.ts'
import { RawClient } from './support/raw-client.ts'

/** End of a body in chunks (RFC 9112, 7.1). */
const LAST_CHUNK = '\r\n0\r\n\r\n'

const newPath = temporaryPaths()
let started: StartedGateway | undefined
let mounted: Mounted | undefined
afterEach(async () => {
  await mounted?.close()
  await started?.close()
})

/** Reads the file with a second connection. No other code of the process runs between the call and its return. */
function booksAt(path: string): readonly [holds: number, charges: number] {
  const database = defaultEngine.open(path)
  const count = (sql: string): number => Number((database.prepare(sql).get() as { readonly n: number }).n)
  const holds = count('SELECT count(*) AS n FROM signalbox_holds WHERE ended_at_ms IS NULL')
  const charges = count("SELECT count(*) AS n FROM signalbox_entries WHERE kind = 'charge'")
  database.close()
  return [holds, charges]
}

/** Sends a chat with `stream: true`, and returns the books at the moment when the last byte of the answer arrives. */
async function booksAtEnd(port: number, path: string): Promise<readonly [number, number]> {
  const client = await RawClient.open(port)
  const atEnd = new Promise<readonly [number, number]>((resolve, reject) => {
    client.socket.on('received', () => {
      if (client.received.endsWith(LAST_CHUNK)) resolve(booksAt(path))
      else if (client.socket.destroyed) reject(new Error(`closed without an end: ${client.received}`))
    })
  })
  const body = JSON.stringify({ model: 'chat-relayed', stream: true, messages: [{ role: 'user', content: 'hello' }] })
  const head = [
    `authorization: Bearer ${TEST_KEY}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  client.send('POST', '/ai/v1/chat/completions', head, body)
  const books = await atEnd
  expect(client.received).toContain('data: [DONE]')
  client.leave()
  return books
}

it.each(Object.entries(MOUNTS))(
  'has charged 10 of 10 streams in %s when the caller reads the last byte',
  async (_name, mount) => {
    const path = newPath()
    const store = sqliteStore({ path })
    const { settle } = store.ledger
    // Long enough for the end of a body to reach the caller, if it was sent before the charge.
    store.ledger.settle = async (...input) => {
      for (let trips = 0; trips < 3; trips++) await fetch(`${started?.url}/livez`)
      return await settle.apply(store.ledger, input)
    }
    started = await startGateway({ store })
    mounted = await mount(started.gateway)

    for (let charges = 1; charges <= 10; charges++) expect(await booksAtEnd(mounted.port, path)).toEqual([0, charges])
  },
)
