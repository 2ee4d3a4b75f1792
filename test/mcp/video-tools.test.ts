import type { Client } from '@modelcontextprotocol/client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { fakeClock } from '../../src/testing/index.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import { ERAS, type Era } from './support/mcp-client.ts'
import { type McpSettings, type StartedMcp, startMcp } from './support/start-mcp.ts'
import { callTool, errorIn } from './support/tool-result.ts'

const BOAT = { model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } }

let started: StartedMcp

afterEach(() => started.close())

/** Starts MCP with videos. Stand-ins render in a few milliseconds by default, and the gateway polls as often. */
function startVideos(settings: McpSettings = {}): Promise<StartedMcp> {
  return startMcp({
    ...settings,
    gateway: { taskPollIntervalMs: 20, ...settings.gateway },
    sandbox: { videoPendingMs: 20, videoRunningMs: 20, ...settings.sandbox },
  })
}

async function submit(client: Client, rest: Record<string, unknown> = {}): Promise<string> {
  const result = await callTool(client, 'submit_video', { ...BOAT, ...rest })
  expect(result.isError, result.text).toBe(false)
  return result.structured.task_id
}

/** A second account with money, and its client. */
async function stranger(): Promise<Client> {
  const { id: accountId } = await started.gateway.accounts.create()
  await started.gateway.accounts.credit(accountId, '10')
  const { key } = await started.gateway.keys.create({ accountId })
  return started.connect({ apiKey: key })
}

describe.each(Object.keys(ERAS) as Era[])('in revision %s', (era) => {
  test('a video is submitted, waited for with progress, and charged by its seconds', async () => {
    started = await startVideos({ sandbox: { videoPendingMs: 500 } })
    const client = await started.connect({ era })
    const id = await submit(client)
    const ended = started.taskEnded(id)
    const told: { progress: number; total?: number | undefined; message?: string | undefined }[] = []

    const result = await callTool(
      client,
      'wait_for_video',
      { task_id: id },
      { onprogress: (progress) => told.push(progress) },
    )

    expect(result.structured).toMatchObject({ task_id: id, status: 'completed', finished: true })
    expect(result.content[0]).toMatchObject({ type: 'resource_link', uri: result.structured.content.video_url })
    expect(told.length).toBeGreaterThan(0)
    expect(told[0]).toMatchObject({ total: 50, message: expect.stringMatching(/^(queued|in_progress), waited 0 s$/) })
    expect((await ended).costNanoDollars).toBe(400_000_000n)
  })

  test('a client that stops waiting ends the wait, and the task goes on', async () => {
    const clock = fakeClock()
    started = await startVideos({ sandbox: { videoPendingMs: 60_000 }, mcp: { clock } })
    const client = await started.connect({ era })
    const id = await submit(client)
    const stop = new AbortController()

    const waiting = callTool(
      client,
      'wait_for_video',
      { task_id: id, timeout_seconds: 900 },
      { signal: stop.signal, onprogress: () => setImmediate(() => stop.abort()) },
    )

    await expect(waiting).rejects.toThrow()
    await vi.waitFor(() => expect(clock.pending).toBe(0))
    expect((await callTool(client, 'get_video_task', { task_id: id })).structured.status).toBe('queued')
  })
})

test('get_video_task reads the record of a task', async () => {
  started = await startVideos({ sandbox: { videoPendingMs: 60_000 } })
  const client = await started.connect()
  const id = await submit(client)

  const { structured } = await callTool(client, 'get_video_task', { task_id: id })

  expect(structured).toMatchObject({ task_id: id, status: 'queued', model: BOAT.model })
})

test('returns the id from wait_for_video after the timeout, and the task continues', async () => {
  const clock = fakeClock()
  started = await startVideos({ sandbox: { videoPendingMs: 60_000 }, mcp: { clock } })
  const client = await started.connect()
  const id = await submit(client)
  const told: number[] = []
  let waits = 0

  const result = await callTool(
    client,
    'wait_for_video',
    { task_id: id, timeout_seconds: 5 },
    {
      onprogress: ({ progress }) => {
        told.push(progress)
        waits++
        // The wait begins after the notification has been sent.
        setImmediate(() => clock.advance(2_000))
      },
    },
  )

  expect(result.structured).toMatchObject({ task_id: id, status: 'queued', finished: false })
  expect(result.isError).toBe(false)
  expect(told).toEqual([0, 2, 4])
  expect(waits).toBe(3)
})

test('wait_for_video waits longer where the limit of the key on questions is used up', async () => {
  const clock = fakeClock()
  started = await startVideos({ sandbox: { videoPendingMs: 60_000 }, mcp: { clock } })
  const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, limits: { requestsPerMinute: 1 } })
  const client = await started.connect({ apiKey: key })
  const id = await submit(client)
  const endPause = (): void => {
    clock.advance(2_000)
    if (clock.pending > 0) setImmediate(endPause)
  }

  const result = await callTool(
    client,
    'wait_for_video',
    { task_id: id, timeout_seconds: 50 },
    { onprogress: () => setImmediate(endPause) },
  )

  expect(result.isError, result.text).toBe(false)
  expect(result.structured).toMatchObject({ task_id: id, status: 'queued', finished: false })
})

test('a task that failed is a result with its error, not an error of the tool', async () => {
  started = await startVideos()
  const client = await started.connect()
  const id = await submit(client, { input: { prompt: 'a boat [[video:fail]]' } })

  const { structured, isError } = await callTool(client, 'wait_for_video', { task_id: id })

  expect(isError).toBe(false)
  expect(structured).toMatchObject({ status: 'failed', finished: true, error: { message: expect.any(String) } })
})

test('cancel_video ends a task that waits, and says what cannot be cancelled', async () => {
  started = await startVideos({ sandbox: { videoPendingMs: 60_000 } })
  const client = await started.connect()
  const id = await submit(client)

  const first = await callTool(client, 'cancel_video', { task_id: id })
  const second = await callTool(client, 'cancel_video', { task_id: id })

  expect(first.structured).toMatchObject({ task_id: id, status: 'cancelled' })
  expect(errorIn(second)).toMatchObject({ code: 'task_not_cancellable', status: 409 })
  expect((await started.account()).held).toBe(0n)
})

test.each(['get_video_task', 'wait_for_video', 'cancel_video'])(
  '%s answers a foreign task like one that does not exist',
  async (tool) => {
    started = await startVideos({ sandbox: { videoPendingMs: 60_000 } })
    const owner = await started.connect()
    const other = await stranger()
    const id = await submit(owner)

    const foreign = await callTool(other, tool, { task_id: id })
    const unknown = await callTool(other, tool, { task_id: 'task_0000' })

    expect(errorIn(foreign)).toMatchObject({ code: 'task_not_found', status: 404 })
    expect(foreign.text).toBe(unknown.text)
    expect((await callTool(owner, 'get_video_task', { task_id: id })).structured.status).toBe('queued')
  },
)

test.each([
  ['another path', '../../../account'],
  ['an action', 'task_1/webhooks/resend'],
  ['the folder above', '..'],
  ['the same, encoded', '%2e%2e'],
  ['a NUL', 'a\0b'],
  ['half a character', '\ud800'],
  ['10,000 characters', 'x'.repeat(10_000)],
  ['a member of every object', '__proto__'],
])('%s as an id is answered like an id that does not exist', async (_what, id) => {
  started = await startVideos()
  const client = await started.connect()

  for (const tool of ['get_video_task', 'wait_for_video', 'cancel_video']) {
    const odd = await callTool(client, tool, { task_id: id })
    const unknown = await callTool(client, tool, { task_id: 'task_0000' })
    expect(errorIn(odd)).toMatchObject({ code: 'task_not_found' })
    expect(odd.text).toBe(unknown.text)
  }
})

test('wait_for_video ends when the key of its caller is revoked, and the session gets 401', async () => {
  const clock = fakeClock()
  started = await startVideos({ gateway: { clock }, sandbox: { videoPendingMs: 60_000 }, mcp: { clock } })
  const { key, record } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
  const client = await started.connect({ apiKey: key })
  const id = await submit(client)
  let waits = 0

  const result = await callTool(
    client,
    'wait_for_video',
    { task_id: id, timeout_seconds: 600 },
    {
      onprogress: async () => {
        waits++
        if (waits === 1) await started.gateway.keys.revoke(record.id)
        setImmediate(() => clock.advance(5_000))
      },
    },
  )

  expect(errorIn(result)).toMatchObject({ code: 'invalid_api_key' })
  expect(waits).toBeLessThan(4)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'mcp-session-id': 'mcp_1' }
  const list = JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/list' })
  expect((await fetch(started.mcpUrl, { method: 'POST', headers, body: list })).status).toBe(401)
})
