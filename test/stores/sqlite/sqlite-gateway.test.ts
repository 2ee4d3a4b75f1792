import { expect, it } from 'vitest'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { chatBody, startGateway } from '../../support/start-gateway.ts'
import { temporaryPaths } from './support/temporary-folder.ts'

const newPath = temporaryPaths()
const CHAT = '/v1/chat/completions'

it('charges a chat once, replays it under its Idempotency-Key, and still knows both after a restart', async () => {
  const path = newPath()
  const first = await startGateway({ store: sqliteStore({ path }) })
  const body = chatBody('chat-relayed', 'hello')
  const before = await first.account()
  const answer = await first.post(CHAT, body, { 'idempotency-key': 'order-1' }).then((response) => response.text())
  const charged = await first.account()
  await first.close()

  const second = await startGateway({ store: sqliteStore({ path }) })
  const replay = await second.post(CHAT, body, { 'idempotency-key': 'order-1' }).then((response) => response.text())
  const after = await second.account()
  await second.close()

  expect(charged.balance < before.balance && charged.held === 0n).toBe(true)
  expect(replay).toBe(answer)
  // Every test gateway is given 100 dollars when it starts.
  expect(after).toEqual({ balance: charged.balance + 100_000_000_000n, held: 0n })
})
