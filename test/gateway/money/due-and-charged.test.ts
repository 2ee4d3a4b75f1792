import { afterEach, expect, test } from 'vitest'
import { formatDollars } from '../../../src/core/money.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

test('request-ended says what was due where the ledger charged less', async () => {
  const store = memoryStore()
  const lacking = 5n
  const ledger = {
    ...store.ledger,
    settle: async (...input: Parameters<typeof store.ledger.settle>) => {
      const resolution = await store.ledger.settle(...input)
      return { ...resolution, charged: resolution.charged - lacking, shortfall: lacking }
    },
  }
  started = await startGateway({ store: { ...store, ledger } })
  const response = await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
  await response.text()
  const { costNanoDollars, dueNanoDollars } = await started.ended(response)

  expect(costNanoDollars).toBeGreaterThan(0n)
  expect(dueNanoDollars - costNanoDollars).toBe(lacking)
  expect(response.headers.get('x-signalbox-cost')).toBe(formatDollars(costNanoDollars))
  expect(response.headers.get('x-signalbox-cost-due')).toBe(formatDollars(dueNanoDollars))
})
