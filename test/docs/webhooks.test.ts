import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { videoTask } from '../../src/endpoints/videos/video-endpoint.ts'
import type { TaskState } from '../../src/stores/task-store.ts'
import { stepAfter } from '../../src/tasks/webhook-deliverer.ts'
import { newDelivery, newWebhookSecret, webhookHeaders } from '../../src/tasks/webhook-payload.ts'
import { countingIds } from '../../src/testing/index.ts'
import { firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/webhooks.md')
const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000 }

test('the page shows the schedule of the code', () => {
  const [, first, ...rows] = firstTable(section(page, 'Attempts'))
  const shownMs = rows.map(([, wait = '']) => {
    const [count, unit = ''] = wait.split(' ')
    return Number(count) * UNITS_MS[unit]!
  })

  const steps = [...rows, first].map((_row, failuresBefore) =>
    stepAfter({ answer: { error: 'no connection' }, failuresBefore, nowMs: 0, random: 0.5 }),
  )

  expect(first).toEqual(['1', 'immediately'])
  expect(shownMs).toEqual(steps.slice(0, -1).map(({ nextAttemptAtMs }) => nextAttemptAtMs))
  expect(steps.map(({ state }) => state)).toEqual([...Array(rows.length).fill('pending'), 'failed'])
})

test('the page lists the types of messages', () => {
  const [, ...rows] = firstTable(section(page, 'The message'))
  const states: TaskState[] = ['completed', 'failed', 'cancelled']

  const types = states.map((state) => {
    const delivery = newDelivery({
      ids: countingIds(),
      nowMs: 0,
      task: {
        ...{ id: 'task_one', accountId: 'acct_one', keyId: 'key_one', state, upstreamId: undefined },
        ...{ credentialId: 'vendor:1', holdId: undefined, createdAtMs: 0, updatedAtMs: 0, nextPollAtMs: 0 },
        deadlineAtMs: 0,
        details: {
          ...{
            requestId: 'req_one',
            model: 'wv2.7-t2v',
            vendor: 'vendor',
            heldUsage: {},
            endpoint: 'videos',
            variant: '720p',
            facts: {},
          },
          ...{ polls: 0, unknownReports: 0, webhookUrl: 'https://app.example.com' },
        },
      },
      message: { eventType: videoTask.eventType, eventData: videoTask.record },
    })
    return (JSON.parse(delivery?.body ?? '') as { type: string }).type
  })

  expect(rows.map(([type]) => type)).toEqual(types)
})

test('the page names the headers of the code', () => {
  const { text } = page
  const headers = webhookHeaders({ secrets: [newWebhookSecret()], id: 'msg_1', timestampSeconds: 1, body: '' })

  for (const name of headers.filter((_text, index) => index % 2 === 0)) expect(text).toContain(`| \`${name}\` |`)
})

describe('the example webhook-receiver', () => {
  let child: ChildProcess
  let output = ''
  let url = ''
  let secret = ''

  beforeAll(async () => {
    const { WEBHOOK_SECRET: _theirs, ...env } = process.env
    child = spawn(process.execPath, ['examples/webhook-receiver.mjs'], { cwd: ROOT, env: { ...env, PORT: '0' } })
    child.stderr?.on('data', (text: Buffer) => {
      output += String(text)
    })
    child.stdout?.on('data', (text: Buffer) => {
      output += String(text)
    })
    url = await printed(/^url +(\S+)$/m)
    secret = await printed(/^secret +(\S+)$/m)
  })
  afterAll(() => void child.kill('SIGKILL'))

  async function printed(pattern: RegExp): Promise<string> {
    for (;;) {
      const value = pattern.exec(output)?.[1]
      if (value !== undefined) return value
      if (child.exitCode !== null) throw new Error(`the example ended:\n${output}`)
      await Promise.race([once(child.stdout!, 'data'), once(child, 'close')])
    }
  }

  function post(id: string, secrets: readonly string[]): Promise<Response> {
    const body = JSON.stringify({
      type: 'video.generation.completed',
      data: { id: `task_of_${id}`, name: 'née 日本語' },
    })
    const timestampSeconds = Math.floor(Date.now() / 1000)
    const headers = new Headers()
    const flat = webhookHeaders({ secrets, id, timestampSeconds, body })
    for (let index = 0; index < flat.length; index += 2) headers.set(flat[index]!, flat[index + 1]!)
    return fetch(url, { method: 'POST', headers, body })
  }

  test('handles a message once, however often it comes', async () => {
    const answers = [await post('msg_1', [secret]), await post('msg_1', [newWebhookSecret(), secret])]
    await post('msg_2', [secret])

    await printed(/(task_of_msg_2)/)

    expect(answers.map(({ status }) => status)).toEqual([204, 204])
    expect(output.match(/^video\.generation\.completed task_of_msg_1$/gm)).toHaveLength(1)
  })

  test('refuses what is signed by another secret, or not at all', async () => {
    const answers = [await post('msg_3', [newWebhookSecret()]), await fetch(url, { method: 'POST', body: '{}' })]

    expect(answers.map(({ status }) => status)).toEqual([401, 401])
    expect(output).not.toContain('task_of_msg_3')
  })

  test('exits with status 0 on SIGTERM', async () => {
    const closed = once(child, 'close')
    child.kill('SIGTERM')

    expect((await closed)[0]).toBe(0)
  })
})
