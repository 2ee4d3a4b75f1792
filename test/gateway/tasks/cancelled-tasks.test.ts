import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { adminHandler } from '../../../src/admin/index.ts'
import { listen } from '../../support/listen.ts'
import { TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { batchLine, batchPrices } from '../batches/batch-gateway.ts'
import { askGateway } from '../money/two-accounts.ts'
import { accepted, type Bench, benches, whole } from '../responses/background-gateway.ts'
import type { AnswerCall } from '../streams/answering-vendor.ts'

const { start } = benches()

const KEYS = { writer: 'operator-key-of-the-writer-0', reader: 'operator-key-of-the-reader-0' }

/** Asks the admin API of a gateway to cancel a task. */
async function cancel({ gateway }: Bench, path: string, key = KEYS.writer) {
  const operatorKeys = [
    { name: 'writer', key: KEYS.writer, can: ['read', 'write'] },
    { name: 'reader', key: KEYS.reader, can: ['read'] },
  ] as const
  const { origin, close } = await listen(nodeHandler(adminHandler(gateway, { operatorKeys })))
  try {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(`${origin}/v1/accounts/${path}/cancel`, { method: 'POST', headers, body: '{}' })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  } finally {
    await close()
  }
}

async function submitBatch({ url, post }: Bench): Promise<string> {
  const form = new FormData()
  form.set('purpose', 'batch')
  const lines = Array.from({ length: 60 }, (_, index) => JSON.stringify(batchLine(index)))
  form.set('file', new Blob([lines.join('\n')]), 'requests.jsonl')
  const headers = { authorization: 'Bearer sk-test-0123456789' }
  const uploaded = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form })
  const { id } = (await uploaded.json()) as { id: string }
  const submitted = await post('/v1/batches', {
    input_file_id: id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  })
  return ((await submitted.json()) as { id: string }).id
}

describe('an operator', () => {
  const held: ServerResponse[] = []
  const holding: AnswerCall = (response) => void held.push(response)

  test('cancels a batch, whose requests in flight end and are charged', async () => {
    const started = await start(holding, { prices: batchPrices, batches: { native: false, requestsAtOnce: 2 } })
    const id = await submitBatch(started)
    await expect.poll(() => started.vendor.calls).toBe(2)
    const ending = started.taskEnded(id)
    const answer = await cancel(started, `${TEST_ACCOUNT}/tasks/${id}`)
    const again = await cancel(started, `${TEST_ACCOUNT}/tasks/${id}`)
    for (const response of held.splice(0)) whole(response)
    const { costNanoDollars } = await ending
    const late = await cancel(started, `${TEST_ACCOUNT}/tasks/${id}`)

    expect(answer).toMatchObject({ status: 200, body: { object: 'task', id, state: 'in_progress' } })
    expect(again.status).toBe(200)
    expect(late).toMatchObject({ status: 409, body: { error: { code: 'task_not_cancellable' } } })
    const [, batch] = await askGateway(started, 'GET', `/v1/batches/${id}`)
    expect(batch).toMatchObject({ status: 'cancelled', request_counts: { completed: 2, failed: 58 } })
    expect([started.vendor.calls, costNanoDollars > 0n, (await started.account()).held]).toEqual([2, true, 0n])
    expect(started.events).toContainEqual(
      expect.objectContaining({ type: 'operator-action', operator: 'writer', action: 'cancel_task', target: id }),
    )
  })

  test('cancels a background answer, which is charged as if its owner had', async () => {
    const started = await start(() => undefined)
    const id = await accepted(started)
    await expect.poll(() => started.vendor.calls).toBe(1)
    const ending = started.taskEnded(id)
    const answer = await cancel(started, `${TEST_ACCOUNT}/tasks/${id}`)
    const { costNanoDollars, state } = await ending

    expect(answer).toMatchObject({ status: 200, body: { id, state: 'cancelled' } })
    expect([state, costNanoDollars > 0n]).toEqual(['cancelled', true])
    const [, read] = await askGateway(started, 'GET', `/v1/responses/${id}`)
    expect(read['status']).toBe('cancelled')
    await expect.poll(() => started.vendor.aborted).toBe(1)
  })

  test('without the scope "write" cancels nothing, and finds no task of another account', async () => {
    const started = await start(() => undefined)
    const id = await accepted(started)
    await expect.poll(() => started.vendor.calls).toBe(1)
    const refused = await cancel(started, `${TEST_ACCOUNT}/tasks/${id}`, KEYS.reader)
    const foreign = await cancel(started, `acct_other/tasks/${id}`)

    expect(refused).toMatchObject({ status: 403, body: { error: { code: 'permission_denied' } } })
    expect(foreign).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    expect(started.vendor.aborted).toBe(0)
    await cancel(started, `${TEST_ACCOUNT}/tasks/${id}`)
  })
})
